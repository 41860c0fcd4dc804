"""Columns that are arrays: checked by the same rules, and made into targets with numpy alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, as_index, as_rng
from unsample.errors import DesignError, FileError, InputError
from unsample.evidence import (
    ItemCounts,
    RankCounts,
    Targets,
    TieRule,
    beats_of,
    compare_lists,
    design_columns,
    number_users,
    numbered,
    pair_keys,
    rank_in_lists,
    tie_names,
    tie_place,
    tie_uniforms,
)
from unsample.tables._layout import (
    Layout,
    Read,
    Rule,
    check_copies,
    complaint,
    kind_of_values,
    user_complaint,
)
from unsample.tables._sql import NUMBER

Columns: TypeAlias = dict[str, npt.NDArray[Any]]
_FLAGS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


def checked_columns(arrays: Mapping[str, npt.NDArray[Any]], layout: Layout, source: str) -> Columns:
    """Return the columns of each role, numbers as floats and names as text; refuse a bad row."""
    sizes = {values.size for values in arrays.values()} - {1} or {1}
    if len(sizes) > 1 or any(values.ndim > 1 for values in arrays.values()):
        shapes = ", ".join(f"{key} {values.shape}" for key, values in arrays.items())
        raise FileError(
            f"the arrays of {source} must be one-dimensional and equally long, or single values, "
            f"got {shapes}"
        )
    (size,) = sizes
    if not size:
        raise InputError(f"{source} has no rows")
    columns: Columns = {}
    given = {
        role: np.broadcast_to(arrays[c].reshape(-1), size) for role, c in layout.columns.items()
    }
    rules = layout.rules()
    numbers = {rule.role for rule in rules if rule.low is not None or rule.role == "score"}
    for role, values in given.items():
        columns[role] = _numbers(role, values) if role in numbers else _names(values)
    first: tuple[int, Rule] | None = None
    for rule in rules:
        bad = _broken(rule, columns)
        if bad.any() and (first is None or np.argmax(bad) < first[0]):
            first = int(np.argmax(bad)), rule
    if first is not None:
        row, rule = first
        raise refusal(rule, layout, source, given[rule.role][row], f" in row {row + 1}")
    return columns


def refusal(rule: Rule, layout: Layout, source: str, value: Any, place: str) -> InputError:
    """Return the error about a value: a word in place of a number, or a wrong number."""
    word = isinstance(value, str | bool | np.bool_) and not re.fullmatch(
        rf"{NUMBER}|(?i:nan)|\s*", str(value)
    )
    if word and rule.low is not None and rule.role != "target":
        hint = "correct or drop such rows"
        rule = replace(rule, text=kind_of_values(rule.role), error=FileError, hint=hint)
    elif not word and isinstance(value, str) and (rule.low is not None or rule.role == "score"):
        value = None if value.strip().lower() in ("nan", "") else float(value)
    return complaint(rule, layout, source, value, place)


def _numbers(role: str, values: npt.NDArray[Any]) -> FloatArray:
    if values.dtype.kind in "iuf" or (values.dtype.kind == "b" and role == "target"):
        return values.astype(np.float64)
    return np.fromiter((_number(role, cell) for cell in values.tolist()), np.float64, len(values))


def _number(role: str, cell: Any) -> float:
    """Return the number that a cell holds; NaN where it holds none."""
    if role == "target" and isinstance(cell, str | bool):
        return _FLAGS.get(str(cell).strip().lower(), np.nan)
    plain = isinstance(cell, int | float) and not isinstance(cell, bool)
    written = isinstance(cell, str) and re.fullmatch(NUMBER, cell)
    return float(cell) if plain or written else np.nan


def _names(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind == "U":
        return values
    return np.array([_name(value) for value in values.tolist()], dtype=np.str_)


def _name(value: Any) -> str:
    if value is None or value != value or str(value) == "<NA>":  # noqa: PLR0124 - NaN
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _broken(rule: Rule, columns: Columns) -> BoolArray:
    values = columns[rule.role]
    bad = values == "" if values.dtype.kind == "U" else np.isnan(values)
    if rule.low is not None:
        more = columns[rule.more] if rule.more else 0.0
        most = (rule.most or 0.0) + more - (columns[rule.less] if rule.less else 0.0)
        with np.errstate(invalid="ignore"):
            bad = bad | (values < rule.low) | (values > most)
            bad = bad if rule.step is None else bad | (values % rule.step != 0)
    return np.asarray(bad & (columns["target"] == 1) if rule.of_targets else bad)


# -- targets -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ranged:
    """Targets of which some are only known to lie after the end of a list."""

    counts: RankCounts
    users: npt.NDArray[Any]
    cells: IntArray


@dataclass(frozen=True, eq=False)
class Reading:
    """How checked rows become targets."""

    source: str
    layout: Layout
    read: Read
    ties: TieRule
    seed: int
    replacement: bool
    filtered: bool
    shared: bool

    def by_model(self, columns: Columns) -> dict[str, Targets | Ranged]:
        """Return the targets of each model, in the order in which they come."""
        if "model" not in columns:
            return {"": self._read(columns)}
        models, first, place = np.unique(columns["model"], return_index=True, return_inverse=True)
        order = np.argsort(first)
        models, rows = models[order], [np.flatnonzero(place.reshape(-1) == n) for n in order]
        return {
            str(model): self._read({role: values[some] for role, values in columns.items()})
            for model, some in zip(models, rows, strict=True)
        }

    def _read(self, columns: Columns) -> Targets | Ranged:
        return self._of_lists(columns) if self.layout.rows == "lists" else self.targets(columns)

    def _of_lists(self, rows: Columns) -> Ranged:
        """Return relevant items of recommended lists, as a uniform sample would have them."""
        size, users = len(rows["better"]), rows["user"]
        items, sampled = self._design(rows, size)
        user, better = number_users(users, size), rows["better"].astype(np.int64)
        relevant = np.bincount(as_index(user))[user]
        if (better > sampled).any():
            place = int(np.argmax(better > sampled))
            raise DesignError(
                f"sampled must be at least the other items of a list, got {int(sampled[place])}, "
                f"but {int(better[place])} come before a relevant item of {self.source}"
            )
        low, places = 1 + better, np.ones(size, dtype=np.int64)
        if self.filtered:
            items = items - relevant + 1
        else:
            low, sampled, places = rank_in_lists(
                better,
                user,
                -rows["number"],
                items=items,
                sampled=np.minimum(sampled, items - relevant),
                replacement=self.replacement,
                uniforms=self._uniforms(users, rows["item"]),
            )
        high = np.where(rows["position"] == 0, sampled + 1, low)
        counts = RankCounts.from_ranks(
            high,
            lowest=low,
            items=items,
            sampled=sampled,
            users=users,
            places=places,
            filtered=self.filtered,
            replacement=self.replacement,
        )
        columns = design_columns(items, sampled, size, self.replacement) | {"high": high}
        columns |= {} if self.filtered else {"relevant": relevant, "place": places}
        return Ranged(counts, users, pair_keys(columns))

    def _design(self, rows: Columns, size: int) -> list[IntArray]:
        """Return the sizes of catalogues and of samples, of each row."""
        given = self.layout.given
        return [
            np.broadcast_to(given[name], size) if name in given else rows[name].astype(np.int64)
            for name in ("items", "sampled")
        ]

    def targets(self, columns: Columns) -> Targets:
        """Return the targets of one model: of scored rows, or of those of one target each."""
        if self.layout.rows != "scores" or "target" not in columns:
            return self._of_targets(columns)
        compared = _compare_scores(columns)
        self.check_users(compared)
        found = self._of_targets(compared)
        outcomes = self._outcomes(columns, compared) if self.shared else None
        if outcomes is None or len(found.ranks) != len(compared["better"]):
            return found
        items, beats = outcomes
        relevant, place = found.relevant_and_place
        shared = ItemCounts.from_outcomes(beats, items=items, relevant=relevant, place=place)
        return replace(found, shared=shared)

    def full_ranks(self, columns: Columns) -> Targets:
        """Return ranks in full catalogues, with grades of relevance."""
        rows = _one_by_one(columns)
        given, size = self.layout.given, len(rows["better"])
        items = (
            np.broadcast_to(given["items"], size)
            if "items" in given
            else rows["items"].astype(np.int64)
        )
        ranks = self._ranks(rows, _target_names(rows))
        return Targets(
            ranks, items, items - 1, rows.get("user"), False, relevance=rows.get("relevance")
        )

    def check_users(self, users: Columns) -> None:
        """Refuse the first user who has no target among other items."""
        wrong = (users["targets"] < 1) | (users["sampled"] < 1)
        if self.layout.unasked:
            wrong |= users["targets"] > 1
        if "sampled" in self.layout.given:
            wrong |= users["sampled"] != self.layout.given["sampled"]
        if wrong.any():
            row = {role: values[np.argmax(wrong)] for role, values in users.items()}
            model = str(row["model"]) if "model" in self.layout else None
            told = str(row["user"]), model, int(row["targets"]), int(row["sampled"])
            raise user_complaint(self.layout, self.source, *told)

    def _of_targets(self, rows: Columns) -> Targets:
        rows = _one_by_one(rows)
        if "relevance" in rows:
            graded = ~np.isin(rows["relevance"], (0, 1))
            if graded.any():
                raise InputError(
                    "relevance must be 0 or 1 where ranks are sampled, got "
                    f"{rows['relevance'][np.argmax(graded)]:g}; grades count in full rankings: use "
                    "unsample.exact, or design='certified'"
                )
            rows = {role: values[rows["relevance"] > 0] for role, values in rows.items()}
        given, users = self.layout.given, rows.get("user")
        size = len(rows["better"])
        items, sampled = self._design(rows, size)
        names = _target_names(rows)
        ranks, places = self._ranks(rows, names), None
        if self.layout.scored and size:
            user = number_users(np.asarray(users), size)
            relevant = np.bincount(as_index(user))[user]
            if self.filtered:
                items = items - relevant + 1
            elif (relevant > 1).any():
                ranks, sampled, places = rank_in_lists(
                    ranks - 1,
                    user,
                    rows["score"],
                    items=items,
                    sampled=sampled,
                    replacement=self.replacement,
                    uniforms=self._uniforms(users, rows.get("item", names)),
                )
        plain = places is None and not self.filtered
        return Targets(
            ranks,
            given["items"] if plain and "items" in given else items,
            given["sampled"] if plain and "sampled" in given else sampled,
            users,
            self.replacement,
            places=places,
            filtered=self.filtered,
            relevance=rows.get("relevance"),
            shared=ItemCounts.without_outcomes(int(np.max(sampled))) if self.shared else None,
        )

    def _uniforms(self, users: Any, names: npt.NDArray[Any]) -> Any:
        """Return by what chance other relevant items take places in a sample."""
        return tuple(tie_uniforms(self.seed, users, names, w) for w in ("others", "place", "rank"))

    def _ranks(self, rows: Columns, names: npt.NDArray[Any]) -> IntArray:
        """Return the rank of each target, by the tie rule."""
        better, tied = (rows[role].astype(np.int64) for role in ("better", "tied"))
        if self.ties == "optimistic":
            return 1 + better
        if self.ties == "pessimistic":
            return 1 + better + tied
        return 1 + better + tie_place(self.seed, rows.get("user"), names, tied)

    def _outcomes(self, columns: Columns, targets: Columns) -> tuple[IntArray, BoolArray] | None:
        """Return the shared items, and which of them beats which target.

        None where the items have no names, or not every target met all items: then no two outcomes
        can be told to be of one item.
        """
        if "item" not in self.layout:
            return None
        codes = np.unique(columns["user"], return_inverse=True)[1].reshape(-1)
        mine, own = np.flatnonzero(_others(columns)), targets["row"]
        items, item = np.unique(columns["item"][mine], return_inverse=True)
        users, user = np.unique(codes[mine], return_inverse=True)
        if len(mine) != len(items) * len(users):
            return None
        scores = np.empty((len(users), len(items)))
        scores[user.reshape(-1), item.reshape(-1)] = columns["score"][mine]
        met = scores[np.searchsorted(users, codes[own])]
        beats = beats_of(columns["score"][own], met, self.ties, as_rng(self.read.rng))
        return numbered(items), beats


def as_compared(columns: Columns) -> Columns:
    """Return ranks as how many items beat a target and how many tie with it, in whole numbers."""
    rest = dict(columns)
    if "rank" in rest:
        rank = rest.pop("rank").astype(np.float64)
        # The mean of two neighbouring ranks is a tie with one item.
        rest["better"], rest["tied"] = np.floor(rank) - 1, np.ceil(rank) - np.floor(rank)
    return rest


def _one_by_one(columns: Columns) -> Columns:
    """Return a row for each target, in an order that their ties do not depend on."""
    rows = as_compared(columns)
    if "count" in rows:
        check_copies(float(rows["count"].sum()))
        times = as_index(rows.pop("count").astype(np.int64))
        rows = {role: np.repeat(values, times) for role, values in rows.items()}
    return rows


def _target_names(rows: Columns) -> npt.NDArray[Any]:
    """Return names by which ties are broken: items, or else numbers of equal rows."""
    if "item" in rows:
        return rows["item"]
    keys = [rows[role] for role in ("items", "sampled") if role in rows]
    order = np.lexsort(keys) if keys else np.arange(len(rows["better"]))
    user = rows["user"][order] if "user" in rows else None
    names = tie_names(user, rows["better"][order], rows["tied"][order])
    found = np.empty_like(names)
    found[order] = names
    return found


def _compare_scores(columns: Columns) -> Columns:
    """Compare each target with the user's other items: one row for each target, sorted by user.

    Users without a target have a row too, to be refused.
    """
    users, first, codes = np.unique(columns["user"], return_index=True, return_inverse=True)
    codes, is_target = codes.reshape(-1), columns["target"] == 1
    of_user = np.bincount(as_index(codes[is_target]), minlength=len(users))
    rows = np.concatenate([np.flatnonzero(is_target), first[of_user == 0]])
    rows = rows[np.lexsort([rows, codes[rows]])]
    better, tied, met = compare_lists(codes, columns["score"], rows, _others(columns))
    kept = {role: values[rows] for role, values in columns.items() if role != "target"}
    counted = {"row": rows, "targets": of_user[codes[rows]], "sampled": met}
    return kept | counted | {"better": better, "tied": tied}


def _others(columns: Columns) -> BoolArray:
    """Tell the rows of other items. An item that is also a target of its user is not one."""
    is_target = columns["target"] == 1
    if "item" not in columns:
        return np.asarray(~is_target)
    user, item = (
        np.unique(columns[r], return_inverse=True)[1].reshape(-1) for r in ("user", "item")
    )
    pair = user * (int(item.max()) + 1) + item
    return np.asarray(~is_target & ~np.isin(pair, pair[is_target]))
