"""The Python behind the page: what was typed comes in as text, the page of a result goes out.

The page asks and shows. What is computed, said and refused is the library's, as on the command.
"""

import csv
import json
import re
import warnings
from pathlib import PurePath
from typing import Any

import numpy as np

import unsample
from unsample.errors import FileError, InputError, RankError, UnsampleError, UnsampleWarning
from unsample.show import as_html

#: What people put between thousands.
_THOUSANDS = re.compile(r"[,_'\s\u00a0\u2009\u202f]")
#: Fields without which there is no question, and an example of each.
_NEEDED = {"items": 3706, "sampled": 99, "users": 6040, "numbers": "HR@10 = 0.710"}


def answer(question: str) -> str:
    """Return the page of a result and its numbers, or what is wrong, as JSON.

    A question is ``{"calculator": name, "fields": {name: text}, "files": [[name, text]]}``.
    """
    asked = json.loads(question)
    typed = {name: text.strip() for name, text in asked["fields"].items() if text.strip()}
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
    for part in filter(None, re.split(r"[,;\n]\s*", typed["numbers"])):
        # The value is last: a name may hold a sign of equality, as NDCG(gain=exp)@10.
        name, _, value = part.removesuffix("%").strip().rpartition("=")
        if not name:
            raise InputError(f"numbers must be such as HR@10 = 0.710, got {part!r}")
        numbers[name.strip()] = value.strip()
    return unsample.published(
        numbers,
        percent="%" in typed["numbers"],
        metrics=_metrics(typed) or list(numbers),
        candidates=typed.get("candidates"),
        **{name: as_number(typed[name]) for name in ("items", "sampled", "users")},
    )


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
        for model, (ranks, of) in read(name, text).items():
            if model in models:
                raise FileError(f"files must differ in their names, got {model} twice")
            models[model], users[model] = ranks, of
    given = {
        "items": as_number(typed["items"]),
        "sampled": as_number(typed["sampled"]),
        "metrics": _metrics(typed) or unsample.answers.DEFAULT_METRICS,
        "candidates": typed.get("candidates"),
    }
    named = all(len(of) for of in users.values())
    if len(models) == 1:
        (model,) = models
        return unsample.estimate(models[model], users=users[model] if named else None, **given)
    return unsample.compare(models, users=users if named else None, **given)


def read(name: str, text: str) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return ranks and users by model, which a column names, or else the file."""
    lines = text.lstrip("\ufeff").splitlines()
    first = lines[0] if lines else ""
    rows = csv.DictReader(lines, delimiter=max(",;\t", key=first.count))
    columns = rows.fieldnames or []
    if "rank" not in columns:
        raise FileError(f"{name} must have a column rank, got {', '.join(columns) or 'none'}")
    found: dict[str, tuple[list[float], list[str]]] = {}
    for place, row in enumerate(rows, start=2):
        ranks, users = found.setdefault(row.get("model") or PurePath(name).stem, ([], []))
        try:
            ranks.append(float(row["rank"]))
        except (TypeError, ValueError):
            raise RankError(
                f"{name} must hold ranks, got {row['rank']!r} in line {place}"
            ) from None
        if "user" in columns:
            users.append(row["user"])
    if not found:
        raise FileError(f"{name} must hold ranks, got no row")
    return {model: (np.array(ranks), users) for model, (ranks, users) in found.items()}


def need(typed: dict[str, str], *names: str) -> None:
    """Refuse a question without these fields."""
    for name in names:
        if name not in typed:
            raise InputError(f"{name} must be given, such as {_NEEDED[name]}")


def as_number(text: str) -> float | int | str:
    """Return a number, or the text, which the library then refuses with its own words."""
    plain = _THOUSANDS.sub("", text)
    try:
        value = float(plain.removesuffix("%")) / (100.0 if plain.endswith("%") else 1.0)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def _metrics(typed: dict[str, str]) -> list[str]:
    return [name for name in re.split(r"[,;\s]+(?![^()]*\))", typed.get("metrics", "")) if name]


_CALCULATORS = {"published": _published, "plan": _plan, "ranks": _ranks}
