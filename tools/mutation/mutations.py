"""Small wrong changes to Python source, for ``tools/mutate.py``: which ones there are.

A mutation replaces one piece of the text and leaves every other character alone, so that a mutant
can be shown as a line before and after. Left out, because no test should pin them: annotations,
docstrings and other text, messages of errors and warnings, ``__repr__`` and its like, decorators,
``assert`` and ``strict=True`` (which state what the type checker cannot see) and imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

#: Functions that only make text for people.
TEXT_FUNCTIONS = {"__repr__", "__str__", "__format__", "_repr_html_"}
#: Keywords whose value is text, decides only how something is shown, or is a check as assert is.
TEXT_KEYWORDS = {"hint", "summary", "repr", "stacklevel", "purpose", "strict"}
#: Calls that do not care which of their first two arguments comes first.
SYMMETRIC = {
    "add", "array_equal", "broadcast", "broadcast_shapes", "clip", "isclose", "isinstance",
    "logaddexp", "max", "maximum", "min", "minimum", "multiply", "swapaxes", "union1d",
}  # fmt: skip

ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}
#: The symbol, and what takes its place: the boundary moved, then the opposite.
COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("any", "all"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("log", "log1p"),
    ("exp", "expm1"),
    ("sum", "mean"),
    ("cumsum", "cumprod"),
)
CALLS = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])} | {"log2": "log", "abs": "float"}
#: Only as a method or a function of numpy: the plain name would not exist.
_ATTRIBUTES_ONLY = {"sum", "mean"}
_SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Mutant:
    """One wrong change: bytes ``start..stop`` of the file become ``replacement``."""

    file: str
    function: str
    operator: str
    line: int
    original: str
    mutated: str
    #: Which of several equal changes in the function this is.
    ordinal: int
    start: int
    stop: int
    replacement: str
    #: Lines of which at least one must run for the change to be felt; none: anything in the file.
    lines: tuple[int, ...]
    #: Whether the changed text runs when the module is imported, not when a function is called.
    at_import: bool

    def apply(self, source: bytes) -> bytes:
        """Return the file with the change made."""
        return source[: self.start] + self.replacement.encode() + source[self.stop :]

    @cached_property
    def name(self) -> str:
        """Return what the mutant is called: stable while its function's text is."""
        place = (self.file, self.function, self.operator)
        return "|".join((*place, self.original, self.mutated, str(self.ordinal)))


@dataclass(frozen=True)
class _Change:
    operator: str
    start: int
    stop: int
    replacement: str
    function: str
    lines: tuple[int, ...]
    at_import: bool


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file."""
    seen: dict[tuple[str, ...], int] = {}
    result = []
    for change in _Walk(source).changes(ast.parse(source)):
        replacement = change.replacement.encode()
        if source[change.start : change.stop] == replacement:
            continue
        mutated = source[: change.start] + replacement + source[change.stop :]
        old, new = _changed_lines(source, mutated, change)
        key = (change.function, change.operator, old, new)
        seen[key] = seen.get(key, 0) + 1
        line = source.count(b"\n", 0, change.start) + 1
        result.append(
            Mutant(
                file=file,
                line=line,
                original=old,
                mutated=new,
                ordinal=seen[key],
                **vars(change),
            )
        )
    return result


def _changed_lines(source: bytes, mutated: bytes, change: _Change) -> tuple[str, str]:
    """Return the lines the change touches, before and after, with blanks as one space."""
    first = source.rfind(b"\n", 0, change.start) + 1
    end = source.find(b"\n", change.stop)
    end = len(source) if end < 0 else end
    tail = len(source) - end
    texts = source[first:end], mutated[first : len(mutated) - tail]
    old, new = (" ".join(text.decode().split()) for text in texts)
    return old, new


class _Walk:
    """Walk over a tree and yield changes, knowing the function and the statement around."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []
        self.lines: tuple[int, ...] = ()
        self.depth = 0
        #: Names bound so far in the function around: deleting what binds them anew still runs.
        self.bound: set[str] = set()

    def changes(self, tree: ast.Module) -> Iterator[_Change]:
        yield from self._block(tree.body)

    # -- statements -------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt]) -> Iterator[_Change]:
        for statement in body:
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[_Change]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._function(node)
            case ast.ClassDef():
                self.scope.append(node.name)
                yield from self._block(node.body)
                self.scope.pop()
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                return
            case _:
                outer, self.lines = self.lines, self._own_lines(node)
                yield from self._deletion(node)
                yield from self._here(node)
                yield from self._inside(node)
                self._bind(node)
                self.lines = outer

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Change]:
        self.scope.append(node.name)
        if node.name not in TEXT_FUNCTIONS and not _is_overload(node):
            saved = self.lines, self.bound
            arguments = node.args
            # A default is felt wherever the function runs.
            self.lines = tuple(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
            for default in (*arguments.defaults, *arguments.kw_defaults):
                if default is not None:
                    yield from self._visit(default)
            names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            self.bound = {argument.arg for argument in names}
            self.depth += 1
            yield from self._block(node.body)
            self.depth -= 1
            self.lines, self.bound = saved
        self.scope.pop()

    def _own_lines(self, node: ast.stmt) -> tuple[int, ...]:
        """Return the lines of a statement without those of its body; none outside functions."""
        if not self.depth:
            return ()
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
        return tuple(range(node.lineno, max(node.lineno, last or 0) + 1))

    def _bind(self, node: ast.stmt) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self.bound.add(part.id)

    def _deletion(self, node: ast.stmt) -> Iterator[_Change]:
        match node:
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
                deletable = True
            case ast.Assign(targets=[ast.Name(id=name)]):
                deletable = name in self.bound
            case ast.Assign(targets=[target]):
                deletable = not isinstance(target, ast.Tuple)
            case ast.Continue():
                yield self._replace(node, "break", "break for continue")
                return
            case ast.Break():
                deletable = True
            case _:
                deletable = False
        if deletable:
            # As many lines as before: what follows keeps its place.
            blank = "\n" * self._text(node).count("\n")
            yield self._replace(node, "pass" + blank, "statement deleted")

    # -- expressions ------------------------------------------------------------------------

    def _inside(self, node: ast.AST) -> Iterator[_Change]:
        match node:
            case ast.Raise():
                return
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="warn"))):
                return
            case ast.AnnAssign():
                if node.value is not None:
                    yield from self._visit(node.value)
                return
            case ast.ExceptHandler():
                yield from self._block(node.body)
                return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child)
            else:
                yield from self._visit(child)

    def _visit(self, node: ast.AST) -> Iterator[_Change]:
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.keyword) and node.arg in TEXT_KEYWORDS:
            return
        if isinstance(node, ast.keyword) and node.arg == "axis":
            yield from self._axis(node.value)
            return
        yield from self._here(node)
        yield from self._inside(node)

    def _here(self, node: ast.AST) -> Iterator[_Change]:
        match node:
            case ast.Compare():
                yield from self._comparison(node)
            case ast.Constant():
                yield from self._constant(node)
            case ast.Call():
                yield from self._call(node)
            case ast.UnaryOp():
                yield self._replace(node, f"({self._text(node.operand)})", "sign or not removed")
            case ast.Slice():
                for bound in (node.lower, node.upper):
                    if bound is not None and not _is_number(bound):
                        yield self._replace(bound, f"({self._text(bound)}) + 1", "slice bound")
            case ast.keyword(arg="side", value=ast.Constant(value=str() as side)):
                yield self._replace(node.value, repr(_SIDES[side]), "other side")
            case ast.If() | ast.While() | ast.IfExp():
                yield from self._negated(node.test)
            case ast.comprehension():
                for condition in node.ifs:
                    yield from self._negated(condition)
            case _:
                yield from self._operator(node)

    def _operator(self, node: ast.AST) -> Iterator[_Change]:
        match node:
            case ast.BinOp():
                yield from self._between(node.left, node.right, *ARITHMETIC.get(type(node.op), ()))
            case ast.AugAssign():
                yield from self._between(node.target, node.value, *ARITHMETIC[type(node.op)])
            case ast.BoolOp():
                words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between(left, right, *words)

    def _comparison(self, node: ast.Compare) -> Iterator[_Change]:
        operands = (node.left, *node.comparators)
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            symbol, others = COMPARISONS[type(operator)]
            for other in others:
                yield from self._between(left, right, symbol, other)

    def _negated(self, test: ast.expr) -> Iterator[_Change]:
        """Negate a condition whose own operators do not already give its opposite."""
        opposite_exists = isinstance(test, ast.Compare | ast.BoolOp) or (
            isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        )
        if not opposite_exists:
            yield self._replace(test, f"(not {self._text(test)})", "condition negated")

    def _constant(self, node: ast.Constant) -> Iterator[_Change]:
        match node.value:
            case bool() as truth:
                yield self._replace(node, str(not truth), "constant")
            case int() as number:
                yield self._replace(node, str(number + 1), "constant")
                if number > 0:
                    yield self._replace(node, str(number - 1), "constant")
            case float() as number:
                yield self._replace(node, repr(number + 1.0), "constant")

    def _axis(self, node: ast.expr) -> Iterator[_Change]:
        text = self._text(node)
        yield self._replace(node, "1" if text == "0" else "0", "axis")

    def _call(self, node: ast.Call) -> Iterator[_Change]:
        attribute = isinstance(node.func, ast.Attribute)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        other = CALLS.get(name)
        if other and (attribute or name not in _ATTRIBUTES_ONLY):
            stop = self._span(node.func)[1]
            yield self._change(stop - len(name), stop, other, f"{other} for {name}")
        if len(node.args) > 1 and name not in SYMMETRIC:
            first, second = node.args[:2]
            if not any(isinstance(arg, ast.Starred) or _is_text(arg) for arg in (first, second)):
                swapped = self._swapped(first, second)
                start, stop = self._span(first)[0], self._span(second)[1]
                yield self._change(start, stop, swapped, "arguments swapped")

    def _swapped(self, first: ast.expr, second: ast.expr) -> str:
        between = self.source[self._span(first)[1] : self._span(second)[0]].decode()
        return self._text(second) + between + self._text(first)

    # -- text -------------------------------------------------------------------------------

    def _between(
        self, left: ast.expr, right: ast.expr, symbol: str = "", other: str = ""
    ) -> Iterator[_Change]:
        """Replace the operator that stands in the text between two operands."""
        if not symbol:
            return
        start, stop = self._span(left)[1], self._span(right)[0]
        pattern = symbol if symbol.startswith(("is", "not")) else re.escape(symbol)
        found = re.search(pattern, self.source[start:stop].decode())
        if found:
            first, last = start + found.start(), start + found.end()
            name = f"{other} for {' '.join(found.group().split())}"
            yield self._change(first, last, other, name)

    def _replace(self, node: ast.AST, replacement: str, operator: str) -> _Change:
        return self._change(*self._span(node), replacement, operator)

    def _change(self, start: int, stop: int, replacement: str, operator: str) -> _Change:
        scope = ".".join(self.scope) or "<module>"
        return _Change(operator, start, stop, replacement, scope, self.lines, not self.depth)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        # Every node with a place in the text has these four.
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]  # type: ignore[attr-defined]
        return first + node.col_offset, last + node.end_col_offset  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        start, stop = self._span(node)
        return self.source[start:stop].decode()


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def _is_text(node: ast.expr) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr)


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
