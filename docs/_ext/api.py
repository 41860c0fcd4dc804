"""The reference of Python names, made from what the package exports.

``{api}`` writes the table of modules, and a page for each of them is written before the sources are
read. A name that is added appears by itself, and one without a docstring fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from types import GenericAlias, ModuleType

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

import unsample

FOLDER = "api"
#: Modules that one imports to extend the package.
INNER = (
    *("bounds", "counts", "likelihood", "posterior", "questions", "sampling", "tables"),
    "uncertainty",
)
STABLE = "Stable: whatever changes here has a line in the changelog."
CHANGING = "For those who extend the package. It may change with any version."


def modules() -> dict[str, ModuleType]:
    """Return the public modules by name, adapters one by one; the command has its own section."""
    names = [f"unsample.{found.name}" for found in pkgutil.iter_modules(unsample.__path__)]
    folder = Path(unsample.adapters.__file__).parent
    names += [f"unsample.adapters.{path.stem}" for path in folder.glob("*.py")]
    public = [name for name in sorted(names) if "._" not in name and name != "unsample.cli"]
    return {name: importlib.import_module(name) for name in public}


def is_inner(name: str) -> bool:
    """Return whether a module is for those who extend the package."""
    return name.split(".")[1] in INNER


def top_names() -> list[str]:
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
    functions = [name for name in top_names() if inspect.isfunction(getattr(unsample, name))]
    classes = [name for name in top_names() if name not in functions]
    parts = [title("unsample"), summary(unsample), "", f"*{STABLE}*\n"]
    parts += [f".. autofunction:: unsample.{name}\n" for name in functions]
    parts += [f".. autoclass:: unsample.{name}\n   :members:\n" for name in classes]
    return "\n".join(parts)


def page_of_module(name: str, module: ModuleType) -> str:
    """Return the page of one module; what the package itself shows is linked, not repeated.

    A constant has an entry only if the module's docstring names it.
    """
    at_the_top = {id(getattr(unsample, other)): other for other in top_names()}
    promise = CHANGING if is_inner(name) else STABLE
    parts = [title(name), f".. automodule:: {name}\n", f"*{promise}*\n"]
    for member in exported(module):
        value = getattr(module, member)
        if id(value) in at_the_top:
            parts.append(f"``{member}`` is :py:obj:`unsample.{at_the_top[id(value)]}`.\n")
        elif inspect.isclass(value):
            parts.append(f".. autoclass:: {name}.{member}\n   :members:\n")
        elif is_called(value):
            parts.append(f".. autofunction:: {name}.{member}\n")
        elif f"`{member}`" in (module.__doc__ or ""):
            parts.append(f".. py:data:: {name}.{member}\n\n   {described(value)}\n")
    return "\n".join(parts)


def is_called(value: object) -> bool:
    """Return whether a value is for calling; constants and names of types are not."""
    is_type = isinstance(value, GenericAlias) or hasattr(value, "__origin__")
    return callable(value) and not is_type and not inspect.ismodule(value)


def exported(module: ModuleType) -> list[str]:
    """Return the public names of a module: those that it lists, or else those it defines."""
    defined = [name for name, value in vars(module).items() if is_own(module, name, value)]
    return list(getattr(module, "__all__", defined))


def is_own(module: ModuleType, name: str, value: object) -> bool:
    """Return whether a module itself defines a name that is no private one."""
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__


def described(value: object) -> str:
    """Return a constant in words: what kind of thing it is, and the names it holds."""
    kind = type(value).__name__
    if isinstance(value, Mapping | tuple | list | frozenset):
        return f"A {kind} of {', '.join(f'``{entry}``' for entry in value)}."
    return f"``{value!r}``"


class Api(Directive):
    """Writes the table of modules, each with what it is for, and their hidden contents."""

    def run(self) -> list[nodes.Node]:
        """Return the table, parsed as Markdown."""
        lines = ["| what you import | |", "| --- | --- |"]
        lines += [f"| [unsample]({FOLDER}/unsample.rst) | {', '.join(top_names())} |"]
        for inner in (False, True):
            for name, module in modules().items():
                if is_inner(name) is inner:
                    lines.append(f"| [{name}]({FOLDER}/{name}.rst) | {summary(module)} |")
        lines += ["", f"The last {len(INNER)} are for those who extend the package.", ""]
        lines += ["```{toctree}", ":hidden:", "", f"{FOLDER}/unsample"]
        lines += [f"{FOLDER}/{name}" for name in modules()] + ["```"]
        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(StringList(lines, source="api"), 0, holder)
        return holder.children


def write_pages(app: Sphinx) -> None:
    """Write the pages into the source folder, touching only those that changed."""
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    pages = {"unsample": page_of_package()}
    pages |= {name: page_of_module(name, module) for name, module in modules().items()}
    for stale in {path.stem for path in folder.glob("*.rst")} - set(pages):
        (folder / f"{stale}.rst").unlink()
    for name, text in pages.items():
        target = folder / f"{name}.rst"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def forget_overloads(app: Sphinx) -> None:
    """Show one signature for each function, though its result may depend on its arguments."""
    for name in top_names():
        value = getattr(unsample, name)
        if inspect.isfunction(value):
            analyzer = ModuleAnalyzer.for_module(value.__module__)
            analyzer.analyze()
            analyzer.overloads.clear()


def hide_overrides(
    app: Sphinx, kind: str, name: str, value: object, skip: bool, options: object
) -> bool | None:
    """Show a method only where it is described: in the class that others extend."""
    return True if inspect.isfunction(value) and not value.__doc__ else None


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
    module = ".".join(wanted.split(".")[:2])
    inside = [name for name in found if name.startswith(f"{module}.")] or found
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
    """Register the directive, and write the pages before sources are read."""
    app.add_directive("api", Api)
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", forget_overloads)
    app.connect("autodoc-skip-member", hide_overrides)
    app.connect("autodoc-process-docstring", mark_examples, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", unlink_metrics)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
