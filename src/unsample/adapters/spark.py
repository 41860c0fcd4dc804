"""Evaluation on Spark: targets go to the workers, counts come back.

Tables that Spark holds need nothing of this: `unsample.tables.read_counts` reads them.
Here the scores are made on the cluster. The model is broadcast once; each partition scores its own
targets and returns one small batch of counts.

>>> from unsample.adapters import spark
>>> counts = spark.exact_counts(targets, model, items=3706)  # doctest: +SKIP
>>> counts = spark.sampled_counts(targets, model.score, items=3706, sampled=99)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import errors
from unsample._checks import Seed, check_integer, import_extra
from unsample.adapters._comparers import Comparer, FullComparer, SampledComparer
from unsample.designs.ranking import Score, ScoreAll
from unsample.errors import InputError, UnsampleError
from unsample.evidence import Comparisons, RankCounts
from unsample.tables.frames import spark_session

if TYPE_CHECKING:
    import scipy.sparse
    from pyspark.sql import DataFrame

__all__ = ["exact_counts", "sampled_counts", "spark_session"]

_FIELDS = {
    "sampled": "bigint",
    "items": "bigint",
    "better": "bigint",
    "tied": "bigint",
    "count": "bigint",
    "weight": "double",
    "weight_squared": "double",
}
#: Targets scored at a time in a worker.
_BATCH = 4096


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
    rng: Seed = 0,
) -> RankCounts:
    """Rank each target among all candidates of its user, on the cluster.

    Parameters
    ----------
    targets
        A Spark frame with a row for each target.
    score_all
        Gives the scores of all items for an array of users: a `unsample.designs.ranking.FactorScores`, a
        model's ``score_all``, or any function that can be sent to the workers.
    items
        Number of items in the catalogue.
    exclude
        Sparse users x items matrix of pairs that are no candidates, or None.
    user, target, weight
        Columns of ``targets``: whole numbers that count users and items from 0, and how much a
        target counts.
    ties, rng
        The tie rule and its seed; the counts do not depend on the partitions.
    """
    check_integer("items", items, minimum=2, error=errors.DesignError)
    comparer = FullComparer(score_all, items, _as_rows(exclude))
    cells = _compare(targets, comparer, [user, target, weight])
    return RankCounts.from_comparisons(cells, ties=ties, rng=rng, replacement=False)


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
    ``FactorScores.score`` or any function that can be sent to the workers. ``rng`` is a seed: the
    draws of a target follow from it, the user and the item, on any number of partitions. A drawn
    item that ties is placed above or below the target on its own, even if it is drawn twice.
    The other parameters are those of `exact_counts`.
    """
    comparer = SampledComparer(score, items, sampled, replacement, rng, _as_rows(exclude))
    cells = _compare(targets, comparer, [user, target, weight])
    return RankCounts.from_comparisons(cells, ties=ties, rng=rng, replacement=replacement)


def _as_rows(seen: Any) -> Any:
    if seen is None:
        return None
    rows = seen.tocsr()
    rows.sort_indices()
    return rows


def _compare(targets: DataFrame, comparer: Comparer, columns: list[str | None]) -> Comparisons:
    python_error = import_extra("pyspark.errors", extra="spark", purpose="Spark").PythonException
    wanted = [name for name in columns if name is not None]
    missing = [name for name in wanted if name not in targets.columns]
    if missing:
        raise InputError(
            f"targets must have the columns {', '.join(wanted)}, got {', '.join(targets.columns)}"
        )
    # As Spark sends functions, and not as it sends values: a scorer may well be a lambda.
    cloudpickle = import_extra("pyspark.cloudpickle", extra="spark", purpose="Spark")
    broadcast = targets.sparkSession.sparkContext.broadcast(cloudpickle.dumps(comparer))

    def count_partition(batches: Iterator[Any]) -> Iterator[Any]:
        return _count_batches(batches, cloudpickle.loads(broadcast.value))

    schema = ", ".join(f"`{name}` {kind}" for name, kind in _FIELDS.items())
    try:
        table = targets.select(*wanted).mapInArrow(count_partition, schema).toArrow()
    except python_error as problem:
        raise _own_error(str(problem)) from problem
    finally:
        broadcast.unpersist()
    if not table.num_rows:
        raise InputError("targets must hold at least one row, got none")
    return Comparisons(**{name: table.column(name).to_numpy() for name in _FIELDS})


def _count_batches(batches: Iterator[Any], comparer: Comparer) -> Iterator[Any]:
    """Count a partition, in a worker: batches of targets in, one batch of counts out."""
    pyarrow = import_extra("pyarrow", extra="spark", purpose="Spark")
    parts = [
        comparer.compare(*columns)
        for batch in batches
        for start in range(0, batch.num_rows, _BATCH)
        for columns in [_as_columns(batch.slice(start, _BATCH))]
    ]
    if parts:
        merged = Comparisons.merge(parts)
        columns = {name: pyarrow.array(getattr(merged, name)) for name in _FIELDS}
        yield pyarrow.RecordBatch.from_pydict(columns)


def _as_columns(batch: Any) -> tuple[npt.NDArray[Any], ...]:
    for name in batch.schema.names:
        if batch.column(name).null_count:
            raise InputError(f"column {name!r} of targets must not hold nulls")
    users, targets, *weights = (
        batch.column(place).to_numpy(zero_copy_only=False) for place in range(batch.num_columns)
    )
    for name, ids in zip(batch.schema.names, (users, targets), strict=False):
        if not np.issubdtype(ids.dtype, np.integer):
            raise InputError(f"column {name!r} of targets must hold whole numbers, got {ids.dtype}")
    weight = weights[0].astype(np.float64) if weights else None
    return users.astype(np.int64), targets.astype(np.int64), weight  # type: ignore[return-value]


def _own_error(text: str) -> Exception:
    """Return the error of this package that a worker raised, or one with all that Spark says."""
    for line in reversed(text.splitlines()):
        module, _, rest = line.strip().rpartition("unsample.errors.")
        name, _, message = rest.partition(": ")
        kind = getattr(errors, name, None)
        if not module and isinstance(kind, type) and issubclass(kind, UnsampleError):
            return kind(message)
    return UnsampleError(f"a worker failed:\n{text.strip()}")
