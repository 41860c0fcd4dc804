"""Evaluation on Spark: targets go to the workers, counts come back.

Tables of ranks or scores that Spark holds need nothing of this: `unsample.estimate` reads them.
Here the scores are made on the cluster, to which the scorer is broadcast once.

>>> from unsample.adapters import spark
>>> counts = spark.counts(targets, model, items=3706, metrics="NDCG@10")  # doctest: +SKIP
>>> unsample.estimate(counts, metrics="NDCG@10")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from unsample._checks import IntArray, Seed, as_seed
from unsample.adapters._install import require
from unsample.counts import RankCounts
from unsample.designs import Design, Run, as_design
from unsample.errors import DesignError, InputError, UnsampleError
from unsample.metrics import Metric
from unsample.questions.evaluate.ask import evaluate
from unsample.scoring import Excluded, as_scorer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["counts"]


def counts(
    targets: DataFrame,
    scorer: Any,
    *,
    items: int,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    design: str | Design = "exact",
    exclude: Excluded | None = None,
    user: str = "user",
    target: str = "target",
    ties: str = "random",
    rng: Seed = 0,
) -> RankCounts:
    """Evaluate the users of each partition where they are, and add up the counts of their ranks.

    `unsample.evaluate` with the same arguments gives the same counts, whatever the partitions.

    Parameters
    ----------
    targets
        A Spark frame with a row for each target.
    scorer, items, metrics, exclude, ties, rng
        As in `unsample.evaluate`; the scorer is sent to the workers.
    design
        ``"exact"``, ``"certified"`` or ``Fixed(99)``: they treat each target on its own.
    user, target
        Columns of ``targets``: whole numbers that count users and items from 0.

    Returns
    -------
    RankCounts
        The counts of all users, for `unsample.estimate` and `unsample.compare`.

    Raises
    ------
    DesignError
        If the design draws from all users.
    InputError
        If ``targets`` have no rows, or lack a column.
    """
    chosen = as_design(design)
    known_scorer = as_scorer(scorer, items)
    if chosen.name == "guided":
        raise DesignError(
            "design must be 'exact', 'certified' or a fixed one, got 'guided', which draws from "
            "all users; evaluate it on one machine"
        )
    if not {user, target} <= set(targets.columns):
        raise InputError(
            f"targets must have the columns {user}, {target}, got {', '.join(targets.columns)}"
        )
    named: dict[str, Any] = {
        "items": items,
        "metrics": metrics,
        "design": chosen,
        "exclude": exclude,
        "rng": as_seed(rng),
        "run": Run(ties=ties),
    }

    def count(users: IntArray, wanted: IntArray) -> RankCounts | UnsampleError:
        """Return the counts, or what is wrong: Spark would bury an error that is raised."""
        try:
            evaluation = evaluate(known_scorer, (users, wanted), **named)
            ranks: RankCounts = evaluation.counts  # type: ignore[union-attr]
        except UnsampleError as problem:
            return problem
        return ranks

    # As Spark sends functions, and not as it sends values: a scorer may well be a lambda.
    cloudpickle = require("spark", "pyspark.cloudpickle")
    broadcast = targets.sparkSession.sparkContext.broadcast(cloudpickle.dumps(count))

    def count_partition(batches: Iterator[Any]) -> Iterator[Any]:
        """Count a partition, in a worker: batches of targets in, one row out."""
        pyarrow = require("spark", "pyarrow")
        filled = [batch for batch in batches if batch.num_rows]
        if filled:
            table = pyarrow.Table.from_batches(filled)
            users, wanted = (column.to_numpy() for column in table.columns)
            counted = cloudpickle.loads(broadcast.value)(users, wanted)
            yield pyarrow.RecordBatch.from_pydict({"counts": [cloudpickle.dumps(counted)]})

    # Errors count users, so all targets of a user are counted in one partition.
    frame = targets.select(user, target).repartition(user)
    try:
        table = frame.mapInArrow(count_partition, "counts binary").toArrow()
    finally:
        broadcast.unpersist()
    if not table.num_rows:
        raise InputError("targets must hold at least one row, got none")
    of_partitions = [cloudpickle.loads(row) for row in table.column("counts").to_pylist()]
    for part in of_partitions:
        if isinstance(part, UnsampleError):
            raise part
    return RankCounts.merge(of_partitions)
