"""What claims are judged on: the tables of a run, and the verdicts they lead to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.lab.experiment._results import Row, Rows

__all__ = ["Evidence", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, by bias and by RMSE, and the numbers behind that."""

    by_bias: bool | None
    by_rmse: bool | None
    detail: str

    @classmethod
    def plain(cls, holds: bool, detail: str) -> Verdict:
        """Return a verdict that has nothing to do with how errors are measured."""
        return cls(holds, holds, detail)


@dataclass(frozen=True)
class Evidence:
    """The tables of a run, cut down to one protocol."""

    tables: Mapping[str, Rows]
    protocol: str

    def rows(self, table: str, **where: object) -> list[Row]:
        """Return the rows of a table under this protocol that have these values."""
        wanted = {"protocol": self.protocol, **where}
        return [r for r in self.tables[table] if all(r[key] == wanted[key] for key in wanted)]

    def contests(self, dataset: str) -> list[dict[str, Row]]:
        """Return the accuracy rows of a data set by estimator, one for each table row."""
        groups: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
        for row in self.rows("accuracy", dataset=dataset):
            groups[row["recommender"], row["metric"]][row["estimator"]] = row
        return list(groups.values())

    def curves(self, dataset: str) -> dict[tuple[str, int], dict[str, FloatArray]]:
        """Return the CDFs of a data set by recommender and sample size, then by estimator."""
        collected: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in self.rows("distributions", dataset=dataset):
            collected[row["recommender"], row["sampled"]][row["estimator"]].append(row["cdf"])
        return {
            key: {label: np.array(values) for label, values in curves.items()}
            for key, curves in collected.items()
        }
