"""`Inputs`: what the arguments of `estimate` and `compare` say of all their sources of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import as_integer_array, check_kind
from unsample.counts import (
    WHOLE,
    ItemCounts,
    ModelCounts,
    Negatives,
    RankCounts,
    Targets,
    as_negatives,
    check_agrees,
)
from unsample.errors import DesignError, InputError
from unsample.metrics import DEFAULT_METRICS, DEFAULT_OF_ONE_TARGET
from unsample.questions.estimate.prior_choice import check_protocol
from unsample.tables import Asked, Read, is_table, read_counts, read_data_sets, read_models

#: A mapping with one of these columns is one table, and not a table for each name.
_COLUMNS_OF_A_TABLE = ("rank", "score", "bin")
#: The protocol in which other relevant items are left out when a target is ranked.
GRAPH = "graph"


@dataclass(frozen=True, eq=False)
class Inputs:
    """What holds for all sources: their sizes and users, how items were drawn, how tables are read.

    The sizes and the users of an array may differ by target. A table has columns for them.
    """

    items: Any
    sampled: Any
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None
    #: How tables are read, and how items were drawn; without the sizes.
    asked: Asked

    @classmethod
    def of(
        cls,
        *,
        items: npt.ArrayLike | None,
        sampled: npt.ArrayLike | None,
        users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None,
        negatives: Negatives | None,
        protocol: str | None,
        read: Read | None,
    ) -> Inputs:
        """Check the arguments of `estimate` and `compare` that hold for all sources.

        Raises
        ------
        InputError
            If ``read``, ``negatives`` or ``protocol`` is of another kind.
        """
        reading = Read() if read is None else read
        check_kind("read", reading, Read, hint="such as unsample.Read(rows='scores')")
        asked = Asked(
            read=reading,
            filtered=check_protocol(protocol) == GRAPH,
            negatives=as_negatives(negatives),
        )
        return cls(items, sampled, users=users, asked=asked)

    def sources(self, ranks: Any) -> dict[str, Any] | None:
        """Return the source of each name; None if ``ranks`` is a single source."""
        if not isinstance(ranks, Mapping):
            return None
        renamed = self.asked.read.columns or {}
        if any(renamed.get(column, column) in ranks for column in _COLUMNS_OF_A_TABLE):
            return None
        if not ranks:
            raise InputError("ranks must be those of at least one name, got an empty dict")
        return {str(name): source for name, source in ranks.items()}

    def counts(self, ranks: Any, by: str | None) -> dict[str, RankCounts]:
        """Return counts by name: of each source, or of each value of the column ``by``.

        The counts of a single source have the name ``""``.
        """
        sources = self.sources(ranks)
        if sources is not None:
            return {name: self._counts(source, name) for name, source in sources.items()}
        if is_table(ranks):
            return dict(read_counts(ranks, self._table(by)))
        if by is not None:
            raise InputError(f"by must be left out with {_kind(ranks)}, which have no columns")
        return {"": self._counts(ranks)}

    def check_agrees(self, source: str, counts: RankCounts) -> None:
        """Refuse arguments that contradict what ``counts`` hold; ``source`` names the counts."""
        if self.users is not None:
            raise InputError(f"users must be left out with {source}, where they are counted")
        check_agrees(
            source,
            counts,
            items=self.items,
            sampled=self.sampled,
            negatives=self.asked.negatives,
        )

    def _counts(self, source: Any, name: str = "") -> RankCounts:
        """Return the counts of one source."""
        if is_table(source):
            return _only(read_counts(source, self._table()), name)
        targets = self.targets(source, name)
        return targets if isinstance(targets, RankCounts) else targets.counts

    def models(self, table: Any, by: str, *, most: int) -> ModelCounts:
        """Return the counts of the models of one table, ``most`` of them, and of each two."""
        asked = replace(self._table(by, runs=True), most_models=most)
        return read_counts(table, asked, pair=True)

    def data_sets(self, table: Any, across: str, *, by: str, most: int) -> dict[str, ModelCounts]:
        """Return the counts of the models of each data set of one table, ``most`` of each."""
        if not is_table(table):
            raise InputError(
                f"across must come with a table or a dict of data sets, got {type(table).__name__}"
            )
        asked = replace(self._table(by, runs=True), most_models=most)
        return read_data_sets(table, asked, across=across)

    def tables(self, sources: Mapping[str, Any]) -> ModelCounts | dict[str, Targets]:
        """Return the counts of models that have a table each, by one query.

        If the tables have no users, return the targets, which are matched by their order.
        """
        return read_models(sources, self._table())

    def targets(self, source: Any, name: str = "") -> Targets | RankCounts:
        """Return the targets of one source that is no table; the counts if it holds only these."""
        if isinstance(source, RankCounts | Targets):
            kind = _kind(source)
            counts = source if isinstance(source, RankCounts) else source.counts
            self.check_agrees(f"the {kind} of {name}" if name else f"the {kind}", counts)
            return source
        refuse_run(source)
        for argument, value in (("items", self.items), ("sampled", self.sampled)):
            if value is None:
                raise DesignError(
                    f"{argument} must be given with ranks, got None; see help(unsample.estimate)"
                )
        shared = None
        if self.asked.negatives.shared:
            shared = ItemCounts.without_outcomes(int(np.max(self.sampled)))
        what = f"ranks of {name}" if name else "ranks"
        return Targets(
            as_integer_array(what, source, hint=WHOLE).astype(np.int64),
            self.items,
            sampled=self.sampled,
            users=self._users_of(name),
            replacement=self.asked.negatives.replacement,
            filtered=self.asked.filtered,
            shared=shared,
        )

    def _users_of(self, name: str) -> npt.ArrayLike | None:
        """Return the users of the source with this name."""
        if not isinstance(self.users, Mapping):
            return self.users
        if name not in self.users:
            raise InputError(f"users must hold the users of every model, got none for {name}")
        users: npt.ArrayLike = self.users[name]
        return users

    def _table(self, by: str | None = None, *, runs: bool = False) -> Asked:
        """Return how a table is read, with its sizes and the column of its groups."""
        if self.users is not None:
            raise InputError("users must be left out with a table; give it a column user")
        return replace(self.asked, items=self.items, sampled=self.sampled, by=by, runs=runs)


def refuse_run(source: object) -> None:
    """Refuse a run of ranx: it holds scores, and does not tell which documents are relevant.

    The name of its module identifies it, so that ranx need not be installed.
    """
    kind = type(source)
    if kind.__module__.partition(".")[0] == "ranx":
        raise InputError(
            f"ranks must be ranks or a table, got a {kind.__name__} of ranx; rank its documents: "
            "unsample.adapters.trec.targets(run, qrels, items=...), and give what it returns"
        )


def _only(models: Mapping[str, RankCounts], name: str) -> RankCounts:
    """Return the only model of a table; a table of counts may hold several."""
    if len(models) > 1:
        raise InputError(f"{name} must hold one model, got {', '.join(models)}; give it alone")
    return next(iter(models.values()))


def _kind(source: object) -> str:
    """Return what a source is called in messages."""
    return type(source).__name__ if isinstance(source, RankCounts | Targets) else "ranks"


def named_by_stem(paths: Iterable[Any]) -> dict[str, Any]:
    """Return files by their names without endings, which name the models in them.

    >>> named_by_stem(["runs/ease.csv", "runs/als.csv"])
    {'ease': 'runs/ease.csv', 'als': 'runs/als.csv'}
    """
    files: dict[str, Any] = {}
    for path in paths:
        stem = PurePath(path).stem
        if stem in files:
            raise InputError(
                f"files must differ in their names, which name the models, got {str(files[stem])!r}"
                f" and {str(path)!r}; name them yourself: NAME=FILE, or a dict in Python"
            )
        files[stem] = path
    return files


def usual_metrics(counts: RankCounts) -> list[str]:
    """Return the default metrics, except those that these counts cannot give."""
    if not counts.several:
        return list(DEFAULT_OF_ONE_TARGET)
    if (counts.position > 0).all():
        return list(DEFAULT_METRICS)
    return [name for name in DEFAULT_METRICS if not _metrics.parse(name).family.uses_positions]
