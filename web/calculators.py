"""The Python behind the page: what was typed comes in as text, the page of a result goes out.

The page asks and shows. What is computed, said and refused is the library's, as on the command.
"""

import csv
import json
import re
import warnings
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

import unsample
from unsample.errors import (
    FileError,
    InputError,
    MetricError,
    UnsampleError,
    UnsampleWarning,
)
from unsample.report import as_html
from unsample.tables import Asked, Read, read_plain_text

#: A number with what people put between thousands; 0,05 and 1,5 are none.
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[,_'\s\u00a0\u2009\u202f]\d{3})+(?:\.\d+)?")
#: Fields without which there is no question, and an example of each.
_NEEDED = {
    "items": 3706,
    "sampled": 99,
    "users": 6040,
    "numbers": "HR@10 = 0.710",
    "table": "two lines: model, HR@10 and below it EASE, 0.710",
}
#: The field whose empty lines count, and whose empty cells may be at either end.
_TABLE = "table"
#: What may stand between the cells of a pasted table; of equally frequent ones, the first.
_SEPARATORS = "\t|;,"
#: A line of these alone is drawn, as that below the names of the columns in Markdown.
_DRAWN = frozenset("|:+- \t")
#: A cell in bold or italics in Markdown, as the best number often is.
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3})(.+)\1")
#: A number as it is printed, with a point or a comma, and its sign of per cent.
_PRINTED = re.compile(r"(\d{1,9}(?:[.,]\d{0,30})?|[.,]\d{1,30})\s*(%?)", re.ASCII)
#: A metric and its number. The value is last: a name may hold a sign of equality, as
#: NDCG(gain=exp)@10.
_NAMED_NUMBER = re.compile(r"\s*(?P<name>.*\S)\s*[=:]\s*(?P<value>[^=:%\s]+)\s*%?\s*")
#: What stands in a cell where nothing is printed.
_NOTHING = ("", "-", "\N{EN DASH}", "\N{EM DASH}")
#: Columns of a pasted table that are no metrics, and those of them that say how all was evaluated.
_KNOWN = ("model", "metric", "value", "dataset", "items", "sampled", "users")
_SHARED = ("dataset", "items", "sampled", "users")
#: So many models can be compared at once; each takes its time.
_MOST_MODELS = 100


def answer(question: str) -> str:
    """Return the page of a result and its numbers, or what is wrong, as JSON.

    A question is ``{"calculator": name, "fields": {name: text}, "files": [[name, text]]}``.
    """
    asked = json.loads(question)
    typed = {
        name: text if name == _TABLE else text.strip()
        for name, text in asked["fields"].items()
        if text.strip()
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)  # the page shows them
            result = _CALCULATORS[asked["calculator"]](typed, asked["files"])
        return json.dumps({"page": as_html(result), "numbers": result.to_json()})
    except UnsampleError as problem:
        return json.dumps({"problem": str(problem)})


def _published(typed: dict[str, str], _: list[list[str]]) -> unsample.Published:
    need(typed, "numbers", "sampled", "items", "users")
    numbers = {}
    # A comma between digits belongs to a number.
    for part in filter(str.strip, re.split(r"[;\n]|,(?!\d)|(?<!\d),", typed["numbers"])):
        found = _NAMED_NUMBER.fullmatch(part)
        if found is None:
            raise InputError(
                "numbers must be a metric and its value each, such as HR@10 = 0.710, got "
                f"{part.strip()!r:.80}"
            )
        numbers[found["name"]] = found["value"].replace(",", ".")
    try:
        return unsample.published(
            numbers,
            percent="%" in typed["numbers"],
            metrics=_metrics(typed) or list(numbers),
            protocol=typed.get("protocol"),
            **{name: as_number(typed[name]) for name in ("items", "sampled", "users")},
        )
    except InputError as problem:
        said, is_per_cent, _ = str(problem).partition("; is it a percentage?")
        if is_per_cent:
            problem.args = (f"numbers: {said}; for per cent, write % behind the number",)
        raise


def _leaderboard(typed: dict[str, str], _: list[list[str]]) -> unsample.Leaderboard:
    need(typed, _TABLE)
    table = read_pasted(typed[_TABLE], typed)
    given = {**typed, **table.sizes}
    need(given, "sampled", "items", "users")
    printed = [name for numbers in table.numbers.values() for name in numbers]
    metrics = _metrics(typed) or list(dict.fromkeys(printed))
    sizes: dict[str, Any] = {name: as_number(given[name]) for name in ("items", "sampled", "users")}
    try:
        return unsample.published(
            table.numbers, metrics=metrics, protocol=typed.get("protocol"), **sizes
        )
    except UnsampleError as problem:
        problem.args = (table.place(str(problem)),)
        raise


def _plan(typed: dict[str, str], _: list[list[str]]) -> unsample.Plan:
    need(typed, "items", "users")
    names = ("items", "users", "budget", "error", "recall", "odds")
    given: dict[str, Any] = {name: as_number(typed[name]) for name in names if name in typed}
    if "difference" in typed:
        given["difference"] = typed["difference"]
    return unsample.plan(metrics=_metrics(typed) or "NDCG@10", **given)


def _ranks(typed: dict[str, str], files: list[list[str]]) -> Any:
    """Return estimates of one model, or a comparison of several, paired by users if there are."""
    need(typed, "items", "sampled")
    if not files:
        raise FileError("files must be at least one table of ranks: drop it, or choose it")
    models: dict[str, Any] = {}
    users: dict[str, Any] = {}
    for name, text in files:
        for model, (ranks, of) in read(name, text, typed).items():
            if model in models:
                raise FileError(f"files must differ in their names, got {model} twice")
            models[model] = ranks
            users[model] = of
    given = {
        "items": as_number(typed["items"]),
        "sampled": as_number(typed["sampled"]),
        "metrics": _metrics(typed) or unsample.metrics.DEFAULT_METRICS,
        "protocol": typed.get("protocol"),
    }
    unnamed = [model for model, of in users.items() if not len(of)]
    named = not unnamed
    if unnamed and len(unnamed) < len(users):
        other = next(model for model in users if model not in unnamed)
        raise FileError(
            f"the table of {unnamed[0]} has no column 'user', and the table of {other} has it; add "
            "the column, or leave it out of all of them"
        )
    if len(models) == 1:
        (model,) = models
        return unsample.estimate(models[model], users=users[model] if named else None, **given)
    return unsample.compare(models, users=users if named else None, **given)


def read(name: str, text: str, typed: dict[str, str]) -> dict[str, tuple[np.ndarray, Any]]:
    """Return ranks and users by model, which a column names, or else the file.

    Rows and messages are those of the command: the package reads them.
    """
    asked = Asked(
        items=as_number(typed["items"]),
        sampled=as_number(typed["sampled"]),
        read=Read(rows="ranks"),
    )
    columns = read_plain_text(name, text, asked=asked)
    rows = len(columns["rank"])
    names = columns.get("model", np.full(rows, PurePath(name).stem))
    users = columns.get("user")
    return {
        str(model): (
            columns["rank"][names == model],
            [] if users is None else users[names == model].tolist(),
        )
        for model in dict.fromkeys(names.tolist())
    }


class Pasted(NamedTuple):
    """A pasted table: the numbers by model, the line of each, and what it says of all of them."""

    numbers: dict[str, dict[str, str]]
    lines: dict[str, int]
    sizes: dict[str, str]

    def place(self, problem: str) -> str:
        """Return what is wrong with the line that it is about, if it is not about a field.

        >>> Pasted({}, {"EASE": 2}, {}).place("EASE: HR@1 and HR@10 contradict each other")
        'table, line 2 (EASE): HR@1 and HR@10 contradict each other'
        >>> Pasted({}, {"EASE": 2}, {}).place("EASE: items must be an integer")
        'items must be an integer'
        """
        for model in sorted(self.lines, key=len, reverse=True):
            said = problem.removeprefix(f"{model}: ")
            if said == problem:
                continue
            field = said.partition(" ")[0]
            if field in _SHARED and field not in self.sizes:
                return said
            return f"table, line {self.lines[model]} ({model}): {said}"
        return f"table: {problem}"


def read_pasted(text: str, typed: dict[str, str]) -> Pasted:
    r"""Return a table of models as it was pasted, with the digits as they were typed.

    A row is a model, or a number of a model, which columns metric and value then hold. ``typed``
    are the fields beside the table, which hold where cells of the same name are empty.

    >>> table = read_pasted("model\tHR@10\tNDCG@10\nEASE\t0.710\t44.8 %\nPop\t0,450\t-", {})
    >>> table.numbers
    {'EASE': {'HR@10': '0.710', 'NDCG@10': '0.448'}, 'Pop': {'HR@10': '0.450'}}
    >>> read_pasted("| model | HR@10 |\n|---|---|\n| EASE | **0.710** |", {}).numbers
    {'EASE': {'HR@10': '0.710'}}
    """
    (first, names), *rows = split_cells(text)
    columns = _columns(first, names)
    long = "metric" in columns
    table = Pasted({}, {}, {})
    shared: dict[str, tuple[str, int]] = {}
    for line, cells in rows:
        if all(cell in _NOTHING for cell in cells):
            continue
        row = _row(line, cells, columns)
        model = row["model"]
        _check_model(line, model, table, several=long)
        for name in _SHARED:
            if name in columns:
                cell = typed.get(name, "") if row[name] in _NOTHING else row[name]
                _share(shared, name, cell, line)
        table.lines.setdefault(model, line)
        numbers = table.numbers.setdefault(model, {})
        if long:
            _add(numbers, line, row)
            continue
        for column, metric in columns.items():
            if metric and row[column] not in _NOTHING:
                numbers[metric] = _number(line, column, cell=row[column], per_cent=column != metric)
    if not table.lines:
        raise wrong(first, "model", "models must stand in the lines below, got none")
    for model, numbers in table.numbers.items():
        if not numbers:
            least = "value" if long else next(name for name in columns if columns[name])
            raise wrong(table.lines[model], least, "a model must have some number, got none")
    table.sizes.update({name: cell for name, (cell, _) in shared.items() if name != "dataset"})
    return table


def _check_model(line: int, model: str, table: Pasted, *, several: bool) -> None:
    """Refuse a row without a model, a second one if each has one, and more than can be compared."""
    if model in _NOTHING:
        raise wrong(line, "model", "the name of a model must stand here, got nothing")
    if model in table.lines and not several:
        before = table.lines[model]
        raise wrong(line, "model", f"a model must have one row, got it in line {before} too")
    if len(table.lines) == _MOST_MODELS and model not in table.lines:
        raise wrong(line, "model", f"a table may have {_MOST_MODELS} models, got one more")


def split_cells(text: str) -> list[tuple[int, list[str]]]:
    r"""Return the cells of each line that has some, with its place; the first holds the names.

    >>> split_cells("model; HR@10\n\nEASE; 0.710")
    [(1, ['model', 'HR@10']), (3, ['EASE', '0.710'])]
    """
    lines = re.split(r"\r\n?|\n", text.removeprefix("\ufeff"))
    written = [
        (at, line) for at, line in enumerate(lines, start=1) if not _DRAWN.issuperset(line.strip())
    ]
    place, first = written[0] if written else (1, "")
    separator = max(_SEPARATORS, key=first.count)
    split = _split_markdown if separator == "|" else _split_separated
    found = split(lines, separator) if separator in first else []
    rows = [(at, [" ".join(cell.split()) for cell in cells]) for at, cells in found]
    rows = [(at, cells) for at, cells in rows if any(cells)]
    if not rows:
        raise InputError(
            f"table, line {place}: names of columns must stand here, with commas, tabs, semicolons "
            f"or pipes between them, got {first.strip()!r:.80}"
        )
    return rows


def _split_markdown(lines: list[str], _: str) -> list[tuple[int, list[str]]]:
    """Return the cells between pipes, without emphasis and lines that are only drawn."""
    rows = []
    for place, line in enumerate(lines, start=1):
        if _DRAWN.issuperset(line.strip()):
            continue
        # A pipe at either end belongs to no cell; one behind a backslash is text.
        inside = re.sub(r"(?<!\\)\|$", "", line.strip().removeprefix("|"))
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]
        emphasis = [_EMPHASIS.fullmatch(cell) for cell in cells]
        rows.append(
            (place, [bold[2] if bold else cell for cell, bold in zip(cells, emphasis, strict=True)])
        )
    return rows


def _split_separated(lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    """Return the cells of CSV or of what a spreadsheet copies; they may be in quotation marks."""
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=separator, skipinitialspace=True, strict=True
    )
    rows = []
    place = 1
    try:
        for cells in reader:
            rows.append((place, cells))
            place = reader.line_num + 1
    except csv.Error:
        column = 1
        whole = re.compile(rf' *(?:"(?:[^"]|"")*"|(?!")[^{separator}\n]*)[{separator}\n]')
        rest = "\n".join(lines[place - 1 :])
        while found := whole.match(rest):
            rest = rest[found.end() :]
            column += 1
        raise wrong(
            place, str(column), "quotation marks must enclose whole cells, got one that does not"
        ) from None
    return rows


def _columns(line: int, names: list[str]) -> dict[str, str]:
    """Return the metric of each column, empty for those that are none; refuse unknown ones."""
    columns: dict[str, str] = {}
    while not names[-1]:
        names = names[:-1]
    lower = [name.lower() for name in names]
    if "model" not in lower and not names[0]:
        lower[0] = "model"  # as above the names of rows in a spreadsheet
    if "model" not in lower:
        raise wrong(line, names[0], "one column must be named model, got none")
    long = "metric" in lower and "value" in lower
    known = _KNOWN if long else tuple(name for name in _KNOWN if name not in {"metric", "value"})
    seen: list[tuple[str, Any]] = []
    for place, (name, plain) in enumerate(zip(names, lower, strict=True), start=1):
        column = plain if plain in known else name
        if not column:
            raise wrong(line, str(place), "every column must have a name, got none")
        if column in columns:
            raise wrong(line, column, "every column must have a name of its own, got two of it")
        columns[column] = ""
        if column in known:
            continue
        if long:
            raise wrong(line, column, "all numbers must stand in the column value, got one more")
        metric = _without_sign(column)
        parsed = _metric(line, column, metric)
        for other, there in seen:
            if parsed.same_as(there):
                raise wrong(line, column, f"it must be another metric than {other}, got the same")
        seen.append((column, parsed))
        columns[column] = metric
    if not long and not seen:
        raise wrong(line, names[-1], "one column must be a metric such as HR@10, got none")
    return columns


def _metric(line: int, column: str, name: str) -> Any:
    """Return the metric of this name."""
    try:
        return unsample.metrics.parse(name)
    except MetricError as problem:
        known = ", ".join(("model", *_SHARED))
        raise wrong(line, column, f"{problem}; other columns may be {known}") from None


def _row(line: int, cells: list[str], columns: dict[str, str]) -> dict[str, str]:
    """Return the cells of a row by column; refuse too few and too many."""
    names = list(columns)
    if len(cells) < len(names):
        raise wrong(
            line,
            names[len(cells)],
            f"{len(names)} cells must stand here, one for each column, got {len(cells)}; leave a "
            "cell empty, or put a dash, where nothing is printed",
        )
    if any(cells[len(names) :]):
        raise wrong(
            line,
            str(len(names) + 1),
            f"{len(names)} cells must stand here, one for each column, got {len(cells)}; where "
            "commas separate cells, write decimals with a point",
        )
    return dict(zip(names, cells, strict=False))


def _share(shared: dict[str, tuple[str, int]], name: str, cell: str, line: int) -> None:
    """Take what all rows must share; refuse another value than in rows before."""
    if name != "dataset":
        value = as_number(cell)
        if not isinstance(value, int) or value < 1:
            raise wrong(line, name, f"a whole number must stand here, got {cell!r:.80}")
        cell = str(value)
    before, place = shared.setdefault(name, (cell, line))
    if before != cell:
        raise wrong(
            line,
            name,
            f"all rows must have one value here, got {before!r:.80} in line {place} and "
            f"{cell!r:.80}; paste the rows of one at a time, or use the package, which tells them "
            "apart",
        )


def _without_sign(name: str) -> str:
    """Return the name of a metric without a sign of per cent."""
    return name.removesuffix("(%)").removesuffix("%").rstrip()


def _add(numbers: dict[str, str], line: int, row: dict[str, str]) -> None:
    """Add the number of a row that names its metric, if it holds one."""
    name = _without_sign(row["metric"])
    parsed = _metric(line, "metric", name)
    for other in numbers:
        if parsed.same_as(unsample.metrics.parse(other)):
            raise wrong(line, "metric", f"a model must have {name} once, got it a second time")
    if row["value"] not in _NOTHING:
        per_cent = name != row["metric"]
        numbers[name] = _number(line, "value", cell=row["value"], per_cent=per_cent)


def _number(line: int, column: str, *, cell: str, per_cent: bool) -> str:
    """Return a printed number with its digits, as a share of 1."""
    found = _PRINTED.fullmatch(cell)
    if found is None:
        raise wrong(
            line,
            column,
            "a number must stand here as it is printed, such as 0.710, or nothing, got "
            f"{cell!r:.80}",
        )
    value = Decimal(found[1].replace(",", "."))
    if per_cent or found[2]:
        value = value.scaleb(-2)
        if value > 1:
            raise wrong(line, column, f"a share must be from 0 to 100 %, got {cell}")
    if value > 1:
        raise wrong(
            line,
            column,
            f"a number must be from 0 to 1, got {cell}; for per cent, write % behind it, or behind "
            "the name of its column",
        )
    return f"{value:f}"


def wrong(line: int, column: str, text: str) -> InputError:
    """Return what is wrong in a cell of a pasted table; columns without a name have a number."""
    return InputError(f"table, line {line}, column {column:.80}: {text}")


def need(typed: dict[str, str], *names: str) -> None:
    """Refuse a question without these fields."""
    for name in names:
        if name not in typed:
            raise InputError(f"{name} must be given, such as {_NEEDED[name]}")


def as_number(text: str) -> float | int | str:
    """Return a number, or the text, which the library then refuses with its own words."""
    plain = text.removesuffix("%").strip()
    if _THOUSANDS.fullmatch(plain):
        plain = re.sub(r"[^\d.]", "", plain)
    try:
        value = float(plain) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def _metrics(typed: dict[str, str]) -> list[str]:
    names = [name for name in re.split(r"[,;\s]+(?![^()]*\))", typed.get("metrics", "")) if name]
    try:
        for name in names:
            unsample.metrics.parse(name)
    except MetricError as problem:
        problem.args = (f"metrics: {problem}",)  # the field that it is about
        raise
    return names


_CALCULATORS = {
    "published": _published,
    "leaderboard": _leaderboard,
    "plan": _plan,
    "ranks": _ranks,
}
