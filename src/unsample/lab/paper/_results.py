"""Results as tidy rows: their columns, writing them to a folder, and reading them back."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from unsample._files import write_atomically
from unsample.errors import FileError

__all__ = ["SCHEMA", "Reproduction", "Row", "Rows", "load_results", "write_json", "write_rows"]

#: A text that begins so is written with an apostrophe in front, which reading takes away; numbers
#: stay numbers.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = tuple[Row, ...]


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text]


_READ: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {"text": str, "integer": int, "real": float, "truth": _truth}
)


def _columns(**kinds: str) -> Mapping[str, str]:
    return MappingProxyType({name: kind for kind, names in kinds.items() for name in names.split()})


def _ordered(order: str, **kinds: str) -> Mapping[str, str]:
    kind_of = _columns(**kinds)
    return MappingProxyType({name: kind_of[name] for name in order.split()})


#: The columns of each table, in order, with the kind of their values.
SCHEMA: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "statistics": _ordered(
            "dataset source users items interactions sparsity note",
            text="dataset source note",
            integer="users items interactions",
            real="sparsity",
        ),
        "accuracy": _ordered(
            "dataset protocol recommender metric k sampled estimator method repeats "
            "exact mean std bias rmse paper_exact paper_mean paper_std",
            text="dataset protocol recommender metric estimator method",
            integer="k sampled repeats",
            real="exact mean std bias rmse paper_exact paper_mean paper_std",
        ),
        "winners": _ordered(
            "dataset protocol metric k estimator repeats true_winner correct paper_correct",
            text="dataset protocol metric estimator true_winner",
            integer="k repeats correct paper_correct",
        ),
        "distributions": _ordered(
            "dataset protocol recommender sampled estimator rank pmf cdf",
            text="dataset protocol recommender estimator",
            integer="sampled rank",
            real="pmf cdf",
        ),
        "sweep": _ordered(
            "dataset protocol recommender metric k sampled estimator repeats "
            "exact mean std bias rmse",
            text="dataset protocol recommender metric estimator",
            integer="k sampled repeats",
            real="exact mean std bias rmse",
        ),
        "claims": _ordered(
            "id claim where holds_by_bias holds_by_rmse detail",
            text="id claim where detail",
            truth="holds_by_bias holds_by_rmse",
        ),
    }
)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All tables of a finished run as rows (numbers plain, what is missing None), and settings."""

    statistics: Rows = field(repr=False)
    accuracy: Rows = field(repr=False)
    winners: Rows = field(repr=False)
    distributions: Rows = field(repr=False)
    sweep: Rows = field(repr=False)
    claims: Rows
    settings: Mapping[str, Any]


def load_results(folder: str | os.PathLike[str]) -> Reproduction:
    """Read the tables that a finished run left in ``folder``."""
    place = Path(folder)
    settings = _read_json(place / "settings.json")
    timing = _read_json(place / "timing.json")
    tables = {name: read_rows(place / f"{name}.csv", name) for name in SCHEMA}
    return Reproduction(**tables, settings={**settings, **timing})


def write_rows(folder: Path, table: str, rows: Iterable[Row]) -> None:
    """Write a table as CSV, all of it or nothing."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    # A carriage return is quoted by newer Pythons only.
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(SCHEMA[table])
    for row in rows:
        cells = [_shown(row[name]) for name in SCHEMA[table]]
        (quoting if any("\r" in cell for cell in cells) else writer).writerow(cells)
    content = text.getvalue().encode()
    write_atomically(folder / f"{table}.csv", lambda file: file.write(content))


def read_rows(path: Path, table: str) -> Rows:
    """Read a table that `write_rows` wrote."""
    columns = SCHEMA[table]
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames != list(columns):
                raise FileError(
                    f"{str(path)!r} must have the columns {', '.join(columns)}, got "
                    f"{', '.join(reader.fieldnames or ['none'])}; run unsample reproduce again"
                )
            return tuple(
                {name: _value(row[name], kind) for name, kind in columns.items()}
                for row in map(_whole_row, reader)
            )
    except OSError as problem:
        raise FileError(_unfinished(path)) from problem
    except (KeyError, TypeError, ValueError, csv.Error) as problem:
        if isinstance(problem, FileError):
            raise
        raise FileError(
            f"{str(path)!r} must be a whole table, got one that cannot be read ({problem}); "
            "run unsample reproduce again"
        ) from problem


def _whole_row(row: dict[Any, Any]) -> dict[str, str]:
    if None in row or None in row.values():
        raise ValueError("a row has too few cells, or too many")
    return row


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, all of it or nothing."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileError(_unfinished(path)) from problem
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{str(path)!r} is not JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise FileError(
            f"{str(path)!r} must hold a JSON object, got {type(content).__name__}; run unsample "
            "reproduce again"
        )
    return content


def _unfinished(path: Path) -> str:
    return (
        f"{str(path.parent)!r} must hold a finished run, and lacks {path.name}; "
        f"finish it with: unsample reproduce --out {path.parent} --resume"
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # Ten digits: more than any estimate deserves, and the same on any number of threads.
        return "" if math.isnan(value) else f"{value:.10g}"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet might compute a text, behind any marks that say it is one."""
    return text.lstrip("'").startswith(_FORMULA_STARTS)


def _value(text: str, kind: str) -> Any:
    if kind == "text":
        return text[1:] if text.startswith("'") and _is_formula(text) else text
    return None if text == "" else _READ[kind](text)
