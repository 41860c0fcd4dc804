"""The queries themselves, in expressions that every engine runs.

Helper columns are made before a group-by, so that each aggregate is of one column: all that some
engines offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.frames._layout import Layout

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
            frame = frame.with_columns(**{mark: bad_number(role, whole=role == "count").cast(nw.Int64)})
            sums[mark] = nw.col(mark).max()
    if "weight" in layout:
        weight = nw.col("weight").cast(nw.Float64)
        total = weight if count is None else weight * count
        frame = frame.with_columns(weight=total, weight_squared=weight * total)
        sums |= {name: nw.col(name).sum() for name in ("weight", "weight_squared")}
    return frame.group_by(keys).agg(**sums)


def users_of_scores(
    frame: nw.LazyFrame[Any], layout: Layout, *, boolean_target: bool
) -> nw.LazyFrame[Any]:
    """Compare each user's items with the user's target: one row for each user.

    The targets are few; they are joined to the rows, so that what an engine must remember grows
    with the users and not with the rows.
    """
    import narwhals as nw

    keys = [*layout.keys, "user"]
    is_target = nw.col("target") if boolean_target else nw.col("target") == 1
    marked = frame.with_columns(
        is_target=is_target,
        score=nw.col("score").cast(nw.Float64),
        **{BAD: _bad_row(layout, boolean_target).cast(nw.Int64)},
    )
    kept = {role: f"target_{role}" for role in ("score", "item", "items", "weight")}
    targets = (
        marked.filter(nw.col("is_target"))
        .group_by(keys)
        .agg(
            nw.len().alias(TARGETS),
            *(nw.col(role).max().alias(name) for role, name in kept.items() if role in layout),
        )
    )
    other = ~nw.col("is_target")
    if "item" in layout:
        # A sampled item that is the target itself is left out, as `ranks_against` leaves it out.
        other &= nw.col("item") != nw.col("target_item")
    compared = marked.join(targets, on=keys, how="left").with_columns(
        sampled=other.cast(nw.Int64),
        better=(other & (nw.col("score") > nw.col("target_score"))).cast(nw.Int64),
        tied=(other & (nw.col("score") == nw.col("target_score"))).cast(nw.Int64),
    )
    carried = [TARGETS, *(kept[role] for role in ("items", "weight") if role in layout)]
    return compared.group_by(keys).agg(
        *(nw.col(name).sum() for name in ("sampled", "better", "tied")),
        *(nw.col(name).max() for name in (BAD, *carried)),
    )


def cells_of_users(users: nw.LazyFrame[Any], layout: Layout) -> nw.LazyFrame[Any]:
    """Group users by everything that tells two of them apart."""
    import narwhals as nw

    keys = [*layout.keys, "sampled", "better", "tied", BAD, TARGETS]
    sums = {"count": nw.len()}
    if "items" in layout:
        users = users.with_columns(items=nw.col("target_items"))
        keys.append("items")
    if "weight" in layout:
        weight = nw.col("target_weight").cast(nw.Float64)
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


def _bad_row(layout: Layout, boolean_target: bool) -> nw.Expr:
    import narwhals as nw

    score = nw.col("score").cast(nw.Float64)
    bad = score.is_null() | score.is_nan() | nw.col("user").is_null() | nw.col("target").is_null()
    if not boolean_target:
        bad |= ~nw.col("target").is_in([0, 1])
    if "item" in layout:
        bad |= nw.col("item").is_null()
    if "weight" in layout:
        bad |= bad_number("weight")
    return bad
