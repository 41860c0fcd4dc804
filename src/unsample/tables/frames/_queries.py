"""The queries themselves, in expressions that every engine runs.

Helper columns are made before a group-by, so that each aggregate is of one column: all that some
engines offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.tables.frames._layout import Layout

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["BAD", "TARGETS", "bad_number", "cells_of_ranks", "cells_of_users", "users_of_scores"]

#: Columns of a query's result that tell of bad rows: a mark, and the number of a user's targets.
BAD, TARGETS = "bad", "targets"


def cells_of_ranks(frame: nw.LazyFrame[Any], layout: Layout) -> nw.LazyFrame[Any]:
    """Group rows that stand for targets by everything that tells two of them apart."""
    import narwhals as nw

    places = ["rank"] if layout.rows == "ranks" else ["better", "tied"]
    keys = [*layout.keys, *places, *(role for role in ("sampled", "items") if role in layout)]
    count = nw.col("count") if "count" in layout else None
    sums = {"count": nw.len() if count is None else count.sum()}
    for role in ("count", "weight"):
        if role in layout:
            mark = f"{BAD}_{role}"
            bad = bad_number(role, whole=role == "count")
            frame = frame.with_columns(**{mark: bad.cast(nw.Int64)})
            sums[mark] = nw.col(mark).max()
    if "weight" in layout:
        weight = nw.col("weight")
        total = weight if count is None else weight * count
        frame = frame.with_columns(weight=total, weight_squared=weight * total)
        sums |= {name: nw.col(name).sum() for name in ("weight", "weight_squared")}
    return frame.group_by(keys).agg(**sums)


def users_of_scores(frame: nw.LazyFrame[Any], layout: Layout) -> nw.LazyFrame[Any]:
    """Compare each user's items with the user's target: one row for each user.

    The targets are few; they are joined to the rows, so that what an engine must remember grows
    with the users and not with the rows.
    """
    import narwhals as nw

    keys = [*layout.keys, "user"]
    marked = frame.with_columns(**{BAD: _bad_row(layout).cast(nw.Int64)})
    kept = {role: f"target_{role}" for role in ("score", "item", "items", "weight")}
    targets = (
        marked.filter(nw.col("target") == 1)
        .group_by(keys)
        .agg(
            nw.len().alias(TARGETS),
            *(nw.col(role).max().alias(name) for role, name in kept.items() if role in layout),
        )
    )
    joined = marked.join(targets, on=keys, how="left")
    better = nw.col("score") > nw.col("target_score")
    tied = nw.col("score") == nw.col("target_score")
    if "item" in layout:
        # This leaves out the target's own row, and a sampled item that is the target itself, as
        # `ranks_against` does.
        other = nw.col("item") != nw.col("target_item")
        compared = joined.with_columns(
            sampled=other.cast(nw.Int64),
            better=(other & better).cast(nw.Int64),
            tied=(other & tied).cast(nw.Int64),
        )
        itself, sampled = 0, nw.col("sampled").sum()
    else:
        compared = joined.with_columns(better=better.cast(nw.Int64), tied=tied.cast(nw.Int64))
        itself, sampled = 1, nw.len().alias("sampled")
    carried = [TARGETS, *(kept[role] for role in ("items", "weight") if role in layout)]
    users = compared.group_by(keys).agg(
        sampled,
        *(nw.col(name).sum() for name in ("better", "tied")),
        *(nw.col(name).max() for name in (BAD, *carried)),
    )
    return users.with_columns(sampled=nw.col("sampled") - itself, tied=nw.col("tied") - itself)


def cells_of_users(users: nw.LazyFrame[Any], layout: Layout) -> nw.LazyFrame[Any]:
    """Group users by everything that tells two of them apart."""
    import narwhals as nw

    keys = [*layout.keys, "sampled", "better", "tied", BAD, TARGETS]
    sums = {"count": nw.len()}
    if "items" in layout:
        users = users.with_columns(items=nw.col("target_items"))
        keys.append("items")
    if "weight" in layout:
        weight = nw.col("target_weight")
        users = users.with_columns(weight=weight, weight_squared=weight * weight)
        sums |= {name: nw.col(name).sum() for name in ("weight", "weight_squared")}
    return users.group_by(keys).agg(**sums)


def bad_number(role: str, *, whole: bool = False) -> nw.Expr:
    """Tell rows in which a role is not a finite number of at least zero (a whole one)."""
    import narwhals as nw

    value = nw.col(role).cast(nw.Float64)
    good = (value >= 0) & (value < float("inf"))
    if whole:
        good &= value % 1 == 0
    return value.is_null() | value.is_nan() | ~good


def _bad_row(layout: Layout) -> nw.Expr:
    import narwhals as nw

    score, target = nw.col("score"), nw.col("target")
    bad = score.is_null() | score.is_nan() | nw.col("user").is_null() | target.is_null()
    bad |= (target != 0) & (target != 1)
    if "item" in layout:
        bad |= nw.col("item").is_null()
    if "weight" in layout:
        bad |= (target == 1) & bad_number("weight")
    return bad
