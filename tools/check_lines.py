"""Is each line about one thing? ``python tools/check_lines.py [FILE_OR_FOLDER ...]`` tells.

Two habits make lines hard to read, and no linter knows them:

* an assignment of several unrelated things, such as ``rows, name = 3, "x"``. Pairs that are one
  thing, such as ``low, high``, are listed here;
* a call of a function of our own with three or more arguments by position: what comes third has a
  name at the call too.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

#: What may be assigned together: the two ends or sides of one thing.
PAIRS = {
    frozenset(pair.split())
    for pair in (
        "low high",
        "lower upper",
        "minimum maximum",
        "left right",
        "first last",
        "first second",
        "start end",
        "start stop",
        "rows columns",
        "row column",
        "head body",
        "old new",
        "before after",
        "a b",
        "x y",
        "i j",
    )
}
#: Positional arguments that a call of our own function may have.
MAX_POSITIONAL = 2
#: Modules whose functions are not ours, by the name that they are imported under.
FOREIGN = {"np", "npt", "math", "json", "os", "re", "time", "scipy", "torch", "ast", "zlib"}
#: Names that are methods of other libraries too; who is called cannot be told from a line.
AMBIGUOUS = {
    *("add", "append", "draw", "get", "index", "join", "map"),
    *("option", "replace", "run", "write"),
}
#: Checks of arguments, always called with a name, a value and a rule in this order.
CHECKS = "check_"


def own_functions(paths: Sequence[Path]) -> dict[str, int]:
    """Return, for each function and class of ours, how many arguments may go by position.

    Where several have one name, the largest number counts.
    """
    found: dict[str, int] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = sys.maxsize if node.args.vararg else MAX_POSITIONAL
                found[node.name] = max(found.get(node.name, 0), size)
            elif isinstance(node, ast.ClassDef):
                found[node.name] = max(found.get(node.name, 0), MAX_POSITIONAL)
    return found


def called(node: ast.Call) -> str | None:
    """Return the name of the function that is called, if it may be ours."""
    match node.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name, value=ast.Name(id=base)) if base not in FOREIGN:
            return name
        case ast.Attribute(attr=name, value=ast.Attribute() | ast.Call() | ast.Subscript()):
            return name
    return None


def names_of(target: ast.expr) -> frozenset[str]:
    """Return the last words of the names that are assigned: ``self.low`` and ``_low`` are low."""
    if not isinstance(target, ast.Tuple):
        return frozenset()
    words = []
    for part in target.elts:
        name = part.id if isinstance(part, ast.Name) else getattr(part, "attr", "")
        words.append(name.lower().strip("_").split("_")[-1])
    return frozenset(words)


def several_things(node: ast.stmt) -> bool:
    """Return whether a statement assigns several unrelated things.

    >>> several_things(ast.parse("rows, name = 3, 'x'").body[0])
    True
    >>> several_things(ast.parse("low, high = 0.0, 1.0").body[0])
    False
    >>> several_things(ast.parse("one, other = other, one").body[0])      # a swap
    False
    """
    if not isinstance(node, ast.Assign):
        return False
    if len(node.targets) > 1:
        return True
    target = node.targets[0]
    if not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)):
        return False
    if any(isinstance(part, ast.Starred) for part in (*target.elts, *node.value.elts)):
        return False
    swapped = {ast.dump(p, annotate_fields=False).replace("Store", "Load") for p in target.elts}
    if swapped == {ast.dump(part, annotate_fields=False) for part in node.value.elts}:
        return False
    return names_of(target) not in PAIRS


def findings(path: Path, own: dict[str, int]) -> Iterator[str]:
    """Yield what a file has of the two habits."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.stmt) and several_things(node):
            yield f"{where}: assigns several unrelated things; give each a line of its own"
        if isinstance(node, ast.Call):
            name = called(node)
            limit = own.get(name or "", sys.maxsize)
            limit += str(name).startswith(CHECKS)
            if name in AMBIGUOUS or any(isinstance(arg, ast.Starred) for arg in node.args):
                continue
            if len(node.args) > limit:
                got = f"{name}() gets {len(node.args)} arguments by position"
                yield f"{where}: {got}; name those from the third on"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; the exit status is 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("src")])
    chosen = parser.parse_args(arguments)
    own = own_functions(sorted(Path("src").rglob("*.py")))
    found: list[str] = []
    for folder in chosen.folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
            found += findings(path, own)
    print("\n".join(found))
    print(f"{len(found)} lines to read twice", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
