"""The reference, made from what the package exports: ``unsample.__all__`` and its rooms.

A name that is added to a room appears here by itself, and one without a docstring fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import unsample

FOLDER = "reference"
#: Rooms behind the front door, for those who extend the package.
INNER = ("answers", "confidence", "evidence", "law", "show", "tables")
STABLE = "Stable: whatever changes here has a line in the changelog."
CHANGING = "For those who extend the package. It may change with any version."


def rooms() -> dict[str, ModuleType]:
    """Return the public modules by name, adapters one by one; the command has a page of its own."""
    names = [f"unsample.{found.name}" for found in pkgutil.iter_modules(unsample.__path__)]
    folder = Path(unsample.adapters.__file__).parent
    names += [f"unsample.adapters.{path.stem}" for path in folder.glob("*.py")]
    public = [name for name in sorted(names) if "._" not in name and name != "unsample.cli"]
    return {name: importlib.import_module(name) for name in public}


def is_inner(name: str) -> bool:
    """Return whether a room is for those who extend the package."""
    return name.split(".")[1] in INNER


def front_door() -> list[str]:
    """Return the names that stand in the package itself."""
    return [name for name in unsample.__all__ if not inspect.ismodule(getattr(unsample, name))]


def summary(value: object) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.getdoc(value)
    if not text:
        raise ValueError(f"{value!r} must have a docstring: it is public")
    return " ".join(text.partition("\n\n")[0].split())


def title(text: str) -> str:
    """Return a heading of reStructuredText."""
    return f"{text}\n{'=' * len(text)}\n"


def page_of_package() -> str:
    """Return the page of the names in the package itself."""
    functions = [name for name in front_door() if inspect.isfunction(getattr(unsample, name))]
    classes = [name for name in front_door() if name not in functions]
    parts = [title("unsample"), summary(unsample), "", f"*{STABLE}*\n"]
    parts += [f".. autofunction:: unsample.{name}\n" for name in functions]
    parts += [f".. autoclass:: unsample.{name}\n   :members:\n" for name in classes]
    return "\n".join(parts)


def page_of_room(name: str, room: ModuleType) -> str:
    """Return the page of one room; what the package itself shows is linked, not repeated."""
    at_the_door = {id(getattr(unsample, other)): other for other in front_door()}
    promise = CHANGING if is_inner(name) else STABLE
    parts = [title(name), f".. automodule:: {name}\n", f"*{promise}*\n"]
    for member in getattr(room, "__all__", ()):
        value = getattr(room, member)
        if id(value) in at_the_door:
            parts.append(f"``{member}`` is :py:obj:`unsample.{at_the_door[id(value)]}`.\n")
        elif inspect.isclass(value):
            parts.append(f".. autoclass:: {name}.{member}\n   :members:\n")
        elif callable(value) and not inspect.ismodule(value):
            parts.append(f".. autofunction:: {name}.{member}\n")
        elif not inspect.ismodule(value):
            parts.append(f".. py:data:: {name}.{member}\n\n   {described(value)}\n")
    return "\n".join(parts)


def described(value: object) -> str:
    """Return a constant in words: what kind of thing it is, and the names it holds."""
    kind = type(value).__name__
    if isinstance(value, Mapping | tuple | list | frozenset):
        return f"A {kind} of {', '.join(f'``{entry}``' for entry in value)}."
    return f"``{value!r}``"


def page_of_contents() -> str:
    """Return the entry page: every room with what it is for."""
    lines = [
        title("Reference"),
        "Made from the public names when this site is built. Names with an underscore in front are",
        "private.\n",
        f"**What you import.** {STABLE}\n",
        *_table({"unsample": ", ".join(f"``{name}``" for name in front_door())}, inner=False),
        f"**Behind it.** {CHANGING}\n",
        *_table({}, inner=True),
    ]
    lines += ["", ".. toctree::", "   :hidden:\n", "   unsample"]
    lines += [f"   {name}" for name in rooms()]
    return "\n".join(lines) + "\n"


def _table(first: Mapping[str, str], *, inner: bool) -> list[str]:
    """Return the lines of a table of rooms, each with what it is for."""
    chosen = {name: summary(room) for name, room in rooms().items() if is_inner(name) is inner}
    lines = [".. list-table::", "   :widths: 30 70\n"]
    for name, text in {**first, **chosen}.items():
        lines += [f"   * - :doc:`{name} <{name}>`", f"     - {text}"]
    return [*lines, ""]


def write_pages(app: Sphinx) -> None:
    """Write the pages into the source folder, touching only those that changed."""
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    pages = {"index": page_of_contents(), "unsample": page_of_package()}
    pages |= {name: page_of_room(name, room) for name, room in rooms().items()}
    for stale in {path.stem for path in folder.glob("*.rst")} - set(pages):
        (folder / f"{stale}.rst").unlink()
    for name, text in pages.items():
        target = folder / f"{name}.rst"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def mark_examples(
    app: Sphinx, kind: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Give the examples at the end of a docstring their heading, lest they read as parameters."""
    has_sections = any(line and not line.strip("-") for line in lines)
    starts = [place for place, line in enumerate(lines) if line.startswith(">>>")]
    if has_sections and starts:
        lines[starts[0] : starts[0]] = ["Examples", "--------"]


def name_aliases(
    app: Sphinx,
    kind: str,
    name: str,
    value: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Show a type alias by its bare name, also where it stands in a union."""
    wrapped = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    shown = (None if text is None else wrapped.sub(r"\1", text) for text in (signature, returned))
    return next(shown), next(shown)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Link a name from where it is defined (a private file) to where it is documented."""
    wanted = node.get("reftarget", "")
    if not wanted.startswith("unsample."):
        return None
    last = wanted.rpartition(".")[2]
    documented = env.domains["py"].objects  # type: ignore[attr-defined]
    found = [name for name in documented if name.rpartition(".")[2] == last]
    room = ".".join(wanted.split(".")[:2])
    inside = [name for name in found if name.startswith(f"{room}.")] or found
    if not inside:
        return None
    entry = documented[min(inside, key=len)]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content)


def unlink_metrics(app: Sphinx, page: nodes.document) -> None:
    """Undo the links of what looks like an address of mail: ``HR@10``."""
    for link in list(page.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(nodes.Text(link.astext()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the reference before sources are read."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", mark_examples, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", unlink_metrics)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
