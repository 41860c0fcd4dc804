"""The reference, made from what the package exports: ``unsample.__all__`` and its rooms.

A name that is added to a room appears here by itself, and one without a docstring fails the build.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import unsample

FOLDER = "reference"


def rooms() -> dict[str, ModuleType]:
    """Return the public modules by name, adapters one by one."""
    found: dict[str, ModuleType] = {}
    for name in unsample.__all__:
        room = getattr(unsample, name)
        if inspect.ismodule(room):
            found[f"unsample.{name}"] = room
    for path in sorted(Path(unsample.adapters.__file__).parent.glob("[!_]*.py")):
        name = f"unsample.adapters.{path.stem}"
        found[name] = importlib.import_module(name)
    return found


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
    parts = [title("unsample"), summary(unsample), ""]
    parts += [f".. autofunction:: unsample.{name}\n" for name in functions]
    parts += [f".. autoclass:: unsample.{name}\n   :members:\n" for name in classes]
    return "\n".join(parts)


def page_of_room(name: str, room: ModuleType) -> str:
    """Return the page of one room; what the package itself shows is linked, not repeated."""
    at_the_door = {id(getattr(unsample, other)): other for other in front_door()}
    parts = [title(name), f".. automodule:: {name}\n"]
    for member in getattr(room, "__all__", ()):
        value = getattr(room, member)
        if id(value) in at_the_door:
            parts.append(f"``{member}`` is :py:obj:`unsample.{at_the_door[id(value)]}`.\n")
        elif inspect.isclass(value):
            parts.append(f".. autoclass:: {name}.{member}\n   :members:\n")
        elif callable(value) and not inspect.ismodule(value):
            parts.append(f".. autofunction:: {name}.{member}\n")
        elif not inspect.ismodule(value):
            parts.append(f".. autodata:: {name}.{member}\n   :no-value:\n")
    return "\n".join(parts)


def page_of_contents() -> str:
    """Return the entry page: every room with what it is for."""
    lines = [
        title("Reference"),
        "Made from the public surface when this site is built. ``import unsample`` gives the front",
        "door; the rooms behind it are modules of the same name.\n",
        ".. list-table::",
        "   :widths: 30 70\n",
        "   * - :doc:`unsample <unsample>`",
        f"     - {', '.join(f'``{name}``' for name in front_door())}",
    ]
    for name, room in rooms().items():
        lines += [f"   * - :doc:`{name} <{name}>`", f"     - {summary(room)}"]
    lines += ["", ".. toctree::", "   :hidden:\n", "   unsample"]
    lines += [f"   {name}" for name in rooms()]
    return "\n".join(lines) + "\n"


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


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the reference before sources are read."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
