"""Make counts from tables of counts, as the query gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unsample.counts import PAIR_KEYS, ModelCounts, PairCounts, RankCounts, pair_keys
from unsample.errors import InputError
from unsample.tables._layout import Asked, Columns
from unsample.tables._sql import CELL


def is_complete(table: Columns) -> bool:
    """Return whether every cell of a table of counts has a rank."""
    return not any(map(_empty, table["low"][_cells(table)]))


def of_table(table: Columns, asked: Asked) -> ModelCounts:
    """Return the counts that a query made, in any engine."""
    if not is_complete(table):
        raise InputError(
            "the table of counts has ranks that are null: some rows broke a rule, or some users of "
            "scored rows have no target or several; let unsample read the rows, which tells them"
        )
    # Files write the name of the only model, which is empty, as they write nothing.
    one, other = (
        np.array(["" if _empty(each) else str(each) for each in table[name]], dtype=np.str_)
        for name in ("model", "other_model")
    )
    cells = _cells(table)
    found = {}
    pairs: dict[tuple[str, str], PairCounts] = {}
    for a, b in sorted({*zip(one[~cells].tolist(), other[~cells].tolist(), strict=True)}):
        rows = ~cells & (one == a) & (other == b)
        sides = [
            np.stack([table[start + key][rows].astype(np.int64) for key in PAIR_KEYS], axis=1)
            for start in ("", "other_")
        ]
        for side in sides if asked.filtered else ():
            side[:, 3:] = 1
        pairs[a, b] = PairCounts.of_cells(
            sides[0], sides[1], count=table["count"][rows].astype(np.int64)
        )
    for name in np.unique(one[cells]).tolist():
        rows = cells & (one == name)
        mine = {key: table[key][rows].astype(np.int64) for key in (*CELL, "count")}
        users = round(float((mine["count"] / mine["relevant"]).sum()))
        clusters = pairs.pop((name, name), None)
        if clusters is not None:
            # A user's only target is a pair with itself, which the query leaves out.
            alone = {key: values[mine["relevant"] == 1] for key, values in mine.items()}
            single = PairCounts.of_cells(pair_keys(alone), pair_keys(alone), count=alone["count"])
            clusters = PairCounts.merge([clusters, single])
        if asked.filtered:
            mine |= dict.fromkeys(("relevant", "position"), np.ones_like(mine["low"]))
        how: dict[str, Any] = {"replacement": asked.negatives.replacement, "users": users}
        found[name] = RankCounts(**mine, **how, clusters=clusters)
    return ModelCounts(found, pairs).rounded()


def _cells(table: Columns) -> npt.NDArray[np.bool_]:
    return np.array([_empty(each) for each in table["bin"]], dtype=bool)


def _empty(value: Any) -> bool:
    return value is None or value == "" or value != value  # noqa: PLR0124 - NaN
