"""Evaluation on Spark: targets go to the workers, counts come back.

Tables of ranks or scores that Spark holds need nothing of this: `unsample.estimate` reads them.
Here the scores are made on the cluster. The scorer is broadcast once. `counts` lets each partition
score its own targets and return one small batch of counts. `scorer` is for guided and certified
designs, which look at all targets before they go on: `unsample.evaluate` runs here, and only scores
are asked of the cluster. Either gives the same on any number of partitions.

>>> from unsample.adapters import spark
>>> counts = spark.counts(targets, model, items=3706)  # doctest: +SKIP
>>> counts = spark.counts(targets, model, items=3706, sampled=99)  # doctest: +SKIP
>>> with spark.scorer(session, model, items=3706) as scores:  # doctest: +SKIP
...     result = unsample.evaluate(scores, targets, items=3706, budget=500_000, batch=1 << 22)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import errors
from unsample._archives import read_arrays
from unsample._checks import IntArray, Seed, check_integer
from unsample.adapters._tasks import require
from unsample.designs import Candidates, Exact, Excluded, Fixed, Score, as_key, as_scorer, run
from unsample.errors import DesignError, InputError, UnsampleError
from unsample.evidence import RankCounts, Targets, check_ties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["counts", "scorer"]

#: What workers send back: the counts of a partition, as `RankCounts.save` writes them.
_SCHEMA = "counts binary"


def counts(
    targets: DataFrame,
    scorer: Any,
    *,
    items: int,
    sampled: int | None = None,
    replacement: bool = True,
    exclude: Excluded | None = None,
    user: str = "user",
    target: str = "target",
    ties: str = "random",
    rng: Seed = 0,
) -> RankCounts:
    """Rank each target among items drawn for it, or among all its candidates, on the cluster.

    The counts are those of `unsample.evaluate` with the same ``rng`` and
    ``design=Fixed(sampled, replacement)`` or ``design="exact"``.

    Parameters
    ----------
    targets
        A Spark frame with a row for each target.
    scorer, items, exclude, ties, rng
        As in `unsample.evaluate`; the scorer is sent to the workers. One that only scores all
        items at once is given as ``unsample.designs.Scorer(score_all=...)``.
    sampled, replacement
        How many items to draw for each target, and how; only they are scored. None ranks each
        target among all candidates of its user.
    user, target
        Columns of ``targets``: whole numbers that count users and items from 0.
    """
    check_integer("items", items, minimum=2, error=DesignError)
    check_ties(ties, whole=True)
    design = Exact() if sampled is None else Fixed(sampled, replacement)
    scoring, seed = as_scorer(scorer, items), as_key(rng)

    if not {user, target} <= set(targets.columns):
        raise InputError(
            f"targets must have the columns {user}, {target}, got {', '.join(targets.columns)}"
        )

    def rank(users: IntArray, chosen: IntArray) -> Targets:
        candidates = Candidates.check((users, chosen), items, exclude)
        candidates.refuse_unrankable()
        return run(design, scoring, candidates, ties=ties, rng=seed)[0]

    # As Spark sends functions, and not as it sends values: a scorer may well be a lambda.
    cloudpickle = require("spark", "pyspark.cloudpickle")
    broadcast = targets.sparkSession.sparkContext.broadcast(cloudpickle.dumps(rank))

    def count_partition(batches: Iterator[Any]) -> Iterator[Any]:
        """Count a partition, in a worker: batches of targets in, one batch of counts out."""
        pyarrow = require("spark", "pyarrow")
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pyarrow.Table.from_batches(filled)
            users, chosen = (column.to_numpy() for column in table.columns)
            counted = cloudpickle.loads(broadcast.value)(users, chosen).counts
            file = BytesIO()
            np.savez_compressed(file, **counted.arrays())
            yield pyarrow.RecordBatch.from_pydict({"counts": [file.getvalue()]})

    # Errors count users, so all targets of a user are counted in one partition.
    frame = targets.select(user, target).repartition(user)
    try:
        table = frame.mapInArrow(count_partition, _SCHEMA).toArrow()
    except require("spark", "pyspark.errors").PythonException as problem:
        raise _own_error(str(problem)) from problem
    finally:
        broadcast.unpersist()
    if not table.num_rows:
        raise InputError("targets must hold at least one row, got none")
    files = (BytesIO(each) for each in table.column("counts").to_pylist())
    return RankCounts.merge(
        RankCounts.from_arrays(read_arrays(file, "a partition"), "a partition") for file in files
    )


@contextmanager
def scorer(session: SparkSession, model: Any, *, items: int) -> Iterator[Score]:
    """Yield a function ``scores(users, items)`` that lets the workers of a cluster score.

    It goes into `unsample.evaluate` with any design, and gives the answers that the model gives
    here. Each call is a job of Spark: take a large ``batch``, such as 2^22, and a model that costs
    more than sending 16 bytes for each score.

    Parameters
    ----------
    session
        The Spark session.
    model, items
        A scorer, sent to the workers once, and the number of items, as in `unsample.evaluate`.
    """
    cloudpickle = require("spark", "pyspark.cloudpickle")
    context = session.sparkContext
    broadcast = context.broadcast(cloudpickle.dumps(as_scorer(model, items).chosen))

    def scores(users: IntArray, asked: IntArray, /) -> npt.NDArray[Any]:
        rows = np.array_split(np.arange(len(users)), min(len(users), context.defaultParallelism))
        parts = [(users[some], asked[some]) for some in rows]
        jobs = context.parallelize(parts, len(parts))
        try:
            found = jobs.map(
                lambda part: np.asarray(cloudpickle.loads(broadcast.value)(*part))
            ).collect()
        except require("spark", "pyspark.errors").PythonException as problem:
            raise _own_error(str(problem)) from problem
        return np.concatenate(found)

    try:
        yield scores
    finally:
        broadcast.unpersist()


def _own_error(text: str) -> Exception:
    """Return the error of this package that a worker raised, or one with all that Spark says."""
    for line in reversed(text.splitlines()):
        module, _, rest = line.strip().rpartition("unsample.errors.")
        name, _, message = rest.partition(": ")
        kind = getattr(errors, name, None)
        if not module and isinstance(kind, type) and issubclass(kind, UnsampleError):
            return kind(message)
    return UnsampleError(f"a worker failed:\n{text.strip()}")
