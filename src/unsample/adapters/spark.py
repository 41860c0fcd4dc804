"""Evaluation on Spark: targets go to the workers, counts come back.

Tables of ranks or scores that Spark holds need nothing of this: `unsample.estimate` reads them.
Here the scores are made on the cluster. The model is broadcast once; each partition scores its own
targets and returns one small batch of counts. They are the counts of `unsample.evaluate` with the
same ``rng`` (``design="exact"``, ``design=Fixed(sampled)``), on any number of partitions.

>>> from unsample.adapters import spark
>>> counts = spark.exact_counts(targets, model, items=3706)  # doctest: +SKIP
>>> counts = spark.sampled_counts(targets, model.score, items=3706, sampled=99)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from unsample import errors
from unsample._checks import FloatArray, IntArray, check_choice, check_integer
from unsample.adapters._lists import WHOLE_TIES
from unsample.adapters._tasks import require
from unsample.designs.ranking import (
    Candidates,
    Orders,
    Scan,
    Score,
    ScoreAll,
    Tally,
    count_all,
    keyed_rank,
    refuse_infinite_targets,
)
from unsample.designs.running._designs import Fixed
from unsample.errors import InputError, UnsampleError
from unsample.evidence import RankCounts, Targets
from unsample.tables.frames import spark_session

if TYPE_CHECKING:
    import scipy.sparse
    from pyspark.sql import DataFrame

__all__ = ["exact_counts", "sampled_counts", "spark_session"]

#: Ranks some targets, of which it gets the users and the items.
_Ranker: TypeAlias = Callable[[IntArray, IntArray], Targets]

_FIELDS = {
    "sampled": "bigint",
    "items": "bigint",
    "low": "bigint",
    "high": "bigint",
    "count": "bigint",
    "weight": "double",
    "weight_squared": "double",
}
#: Scores asked for in one call of the scorer, about.
_BATCH = 1 << 17


def exact_counts(
    targets: DataFrame,
    score_all: ScoreAll,
    *,
    items: int,
    exclude: scipy.sparse.sparray | scipy.sparse.spmatrix | None = None,
    user: str = "user",
    target: str = "target",
    weight: str | None = None,
    ties: str = "random",
    rng: int = 0,
) -> RankCounts:
    """Rank each target among all candidates of its user, on the cluster.

    Parameters
    ----------
    targets
        A Spark frame with a row for each target.
    score_all
        Gives the scores of all items for an array of users: a `unsample.designs.FactorScores`, a
        model's ``score_all``, or any function that can be sent to the workers.
    items
        Number of items in the catalogue.
    exclude
        Sparse users x items matrix of pairs that are no candidates, or None.
    user, target, weight
        Columns of ``targets``: whole numbers that count users and items from 0, and how much a
        target counts.
    ties
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``.
    rng
        A seed. What is random of a target follows from it, the user and the item.
    """
    seed = _check(items, ties, rng)

    def rank(users: IntArray, wanted: IntArray) -> Targets:
        candidates = Candidates.check(users, wanted, items, exclude)
        better, equal = (np.empty(len(candidates), dtype=np.int64) for _ in range(2))
        for part in count_all(score_all, candidates):
            refuse_infinite_targets(part.own, users[part.place], wanted[part.place])
            better[part.place], equal[part.place] = part.better, part.equal
        # The scan scores nothing here: it keys the places among ties.
        scan = Scan.prepare(_no_scores, candidates, seed=seed)
        place = Orders(scan.others, scan.keys).tie_place(np.arange(len(candidates)))
        ranks = keyed_rank(better, equal, ties, place)
        return Targets(ranks, scan.others + 1, scan.others, users=users, replacement=False)

    return _count_on_cluster(targets, rank, [user, target, weight], replacement=False)


def sampled_counts(
    targets: DataFrame,
    score: Score,
    *,
    items: int,
    sampled: int,
    replacement: bool = True,
    exclude: scipy.sparse.sparray | scipy.sparse.spmatrix | None = None,
    user: str = "user",
    target: str = "target",
    weight: str | None = None,
    ties: str = "random",
    rng: int = 0,
) -> RankCounts:
    """Rank each target among items drawn for it, on the cluster; only those are scored.

    ``score`` gives the scores of chosen items (row i of ``items`` for ``users[i]``), such as
    ``FactorScores.score`` or any function that can be sent to the workers. The other parameters
    are those of `exact_counts`.
    """
    seed = _check(items, ties, rng)
    design = Fixed(sampled, replacement)

    def rank(users: IntArray, wanted: IntArray) -> Targets:
        candidates = Candidates.check(users, wanted, items, exclude)
        scan = Scan.prepare(score, candidates, seed=seed, replacement=replacement)
        design.fit_to((), scan.others)
        tally = Tally.empty(len(candidates))
        for _ in scan.advance(tally, np.full(len(candidates), sampled), batch=_BATCH):
            pass
        ranks = 1 + tally.beaten(ties)
        return Targets(ranks, scan.others + 1, sampled, users=users, replacement=replacement)

    return _count_on_cluster(targets, rank, [user, target, weight], replacement=replacement)


def _check(items: int, ties: str, rng: int) -> int:
    """Refuse arguments that no worker could use, and return the seed."""
    check_integer("items", items, minimum=2, error=errors.DesignError)
    check_choice("ties", ties, WHOLE_TIES)
    hint = "workers need a seed, not a Generator"
    return check_integer("rng", rng, minimum=0, maximum=2**63 - 1, hint=hint)


def _no_scores(users: IntArray, items: IntArray, /) -> FloatArray:
    raise AssertionError("nothing is drawn where all candidates are ranked")


def _count_on_cluster(
    targets: DataFrame, rank: _Ranker, columns: list[str | None], *, replacement: bool
) -> RankCounts:
    python_error = require("spark", "pyspark.errors").PythonException
    user, *others = wanted = [name for name in columns if name is not None]
    missing = [name for name in wanted if name not in targets.columns]
    if missing:
        raise InputError(
            f"targets must have the columns {', '.join(wanted)}, got {', '.join(targets.columns)}"
        )
    # As Spark sends functions, and not as it sends values: a scorer may well be a lambda.
    cloudpickle = require("spark", "pyspark.cloudpickle")
    broadcast = targets.sparkSession.sparkContext.broadcast(cloudpickle.dumps(rank))

    def count_partition(batches: Iterator[Any]) -> Iterator[Any]:
        return _count_partition(batches, cloudpickle.loads(broadcast.value))

    # Errors count users, so all targets of a user are counted in one partition.
    frame = targets.select(user, *others).repartition(user)
    schema = ", ".join(f"`{name}` {kind}" for name, kind in _FIELDS.items())
    try:
        table = frame.mapInArrow(count_partition, schema).toArrow()
    except python_error as problem:
        raise _own_error(str(problem)) from problem
    finally:
        broadcast.unpersist()
    if not table.num_rows:
        raise InputError("targets must hold at least one row, got none")
    cells = {name: table.column(name).to_numpy() for name in _FIELDS}
    return RankCounts(**cells, replacement=replacement)


def _count_partition(batches: Iterator[Any], rank: _Ranker) -> Iterator[Any]:
    """Count a partition, in a worker: batches of targets in, one batch of counts out."""
    pyarrow = require("spark", "pyarrow")
    filled = [batch for batch in batches if batch.num_rows]
    if filled:
        users, targets, weights = _as_columns(pyarrow.Table.from_batches(filled))
        counts = replace(rank(users, targets), weights=weights).counts
        cells = {name: pyarrow.array(getattr(counts, name)) for name in _FIELDS}
        yield pyarrow.RecordBatch.from_pydict(cells)


def _as_columns(table: Any) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return users, targets and weights, or name the column that cannot be."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for place, (name, column) in enumerate(columns.items()):
        if column.null_count:
            raise InputError(f"column {name!r} of targets must not hold nulls")
        if place < 2 and not np.issubdtype(column.to_numpy().dtype, np.integer):
            raise InputError(
                f"column {name!r} of targets must hold whole numbers, got {column.type}"
            )
    users, targets, *weights = (column.to_numpy() for column in columns.values())
    weight = weights[0].astype(np.float64) if weights else None
    return users.astype(np.int64), targets.astype(np.int64), weight


def _own_error(text: str) -> Exception:
    """Return the error of this package that a worker raised, or one with all that Spark says."""
    for line in reversed(text.splitlines()):
        module, _, rest = line.strip().rpartition("unsample.errors.")
        name, _, message = rest.partition(": ")
        kind = getattr(errors, name, None)
        if not module and isinstance(kind, type) and issubclass(kind, UnsampleError):
            return kind(message)
    return UnsampleError(f"a worker failed:\n{text.strip()}")
