"""What `estimate` and `compare` are given: sources of any kind, and what holds for all of them."""

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
from unsample.metrics import DEFAULT_METRICS
from unsample.questions.estimate.prior_choice import check_protocol
from unsample.tables import Asked, Read, is_table, read_counts, read_data_sets, read_models

#: Columns by which a mapping is known to be one table, and not a table for each name.
_TELLING = ("rank", "score", "bin")
#: The protocol in which other relevant items are left out when a target is ranked.
GRAPH = "graph"


@dataclass(frozen=True, eq=False)
class Inputs:
    """What holds for all sources: their sizes and users, how items were drawn, how tables are read.

    Sizes and users of arrays may differ by target; those of a table are its columns.
    """

    items: Any
    sampled: Any
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None
    #: What is asked of a table, but for its sizes.
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
        """Return what the arguments of `estimate` and `compare` say of all sources."""
        how = Read() if read is None else read
        check_kind("read", how, Read, hint="such as unsample.Read(rows='scores')")
        asked = Asked(
            read=how,
            filtered=check_protocol(protocol) == GRAPH,
            negatives=as_negatives(negatives),
        )
        return cls(items, sampled, users, asked)

    def sources(self, given: Any) -> dict[str, Any] | None:
        """Return the source of each name; None where one source is given for all."""
        named = self.asked.read.columns or {}
        if not isinstance(given, Mapping) or any(named.get(c, c) in given for c in _TELLING):
            return None
        if not given:
            raise InputError("ranks must be those of at least one name, got an empty dict")
        return {str(name): source for name, source in given.items()}

    def counts(self, given: Any, by: str | None) -> dict[str, RankCounts]:
        """Return the counts of each source, or of each value of ``by``; else under no name."""
        several = self.sources(given)
        if several is not None:
            return {name: self._counts(source, name) for name, source in several.items()}
        if is_table(given):
            return dict(read_counts(given, self._table(by)))
        if by is not None:
            raise InputError(f"by must be left out with {_kind(given)}, which have no columns")
        return {"": self._counts(given)}

    def check_agrees(self, source: str, counts: RankCounts) -> None:
        """Refuse what is said of ``counts`` beside them, if it is not what they hold."""
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
        if is_table(source):
            return _only(read_counts(source, self._table()), name)
        found = self.targets(source, name)
        return found if isinstance(found, RankCounts) else found.counts

    def models(self, table: Any, by: str) -> ModelCounts:
        """Return the counts of the models of one table, and of each two of them."""
        return read_counts(table, self._table(by, runs=True), pair=True)

    def data_sets(self, table: Any, across: str, *, by: str) -> dict[str, ModelCounts]:
        """Return the counts of the models of each data set of one table."""
        if not is_table(table):
            raise InputError(
                f"across must come with a table or a dict of data sets, got {type(table).__name__}"
            )
        return read_data_sets(table, self._table(by, runs=True), across=across)

    def tables(self, sources: Mapping[str, Any]) -> ModelCounts | dict[str, Targets]:
        """Return the counts of models with a table each, by one query.

        Without users, these are their targets, which are matched by their order.
        """
        return read_models(sources, self._table())

    def targets(self, source: Any, name: str = "") -> Targets | RankCounts:
        """Return the targets of one source that is no table, or its counts if it holds no more."""
        if isinstance(source, RankCounts | Targets):
            kind = _kind(source)
            counts = source if isinstance(source, RankCounts) else source.counts
            self.check_agrees(f"the {kind} of {name}" if name else f"the {kind}", counts)
            return source
        refuse_run(source)
        for what in ("items", "sampled"):
            if getattr(self, what) is None:
                raise DesignError(
                    f"{what} must be given with ranks, got None; see help(unsample.estimate)"
                )
        users = self.users
        if isinstance(users, Mapping):
            if name not in users:
                raise InputError(f"users must hold the users of every model, got none for {name}")
            users = users[name]
        shared = None
        if self.asked.negatives.shared:
            shared = ItemCounts.without_outcomes(int(np.max(self.sampled)))
        what = f"ranks of {name}" if name else "ranks"
        return Targets(
            as_integer_array(what, source, hint=WHOLE).astype(np.int64),
            self.items,
            self.sampled,
            users,
            self.asked.negatives.replacement,
            filtered=self.asked.filtered,
            shared=shared,
        )

    def _table(self, by: str | None = None, *, runs: bool = False) -> Asked:
        """Return what is asked of a table."""
        if self.users is not None:
            raise InputError("users must be left out with a table; give it a column user")
        return replace(self.asked, items=self.items, sampled=self.sampled, by=by, runs=runs)


def refuse_run(source: object) -> None:
    """Refuse a run of ranx, which holds scores: which documents are relevant, another object says.

    It is known by the name of its module, so that ranx need not be there.
    """
    kind = type(source)
    if kind.__module__.partition(".")[0] == "ranx":
        raise InputError(
            f"ranks must be ranks or a table, got a {kind.__name__} of ranx; rank its documents: "
            "unsample.adapters.trec.targets(run, qrels, items=...), and give what it returns"
        )


def _only(found: Mapping[str, RankCounts], name: str) -> RankCounts:
    """Return the only model of a table; a table of counts may hold several."""
    if len(found) > 1:
        raise InputError(f"{name} must hold one model, got {', '.join(found)}; give it alone")
    return next(iter(found.values()))


def _kind(given: object) -> str:
    return type(given).__name__ if isinstance(given, RankCounts | Targets) else "ranks"


def named_by_stem(paths: Iterable[Any]) -> dict[str, Any]:
    """Return files by their names without endings, which name the models in them."""
    found: dict[str, Any] = {}
    for path in paths:
        stem = PurePath(path).stem
        if stem in found:
            raise InputError(
                f"files must differ in their names, which name the models, got {str(found[stem])!r}"
                f" and {str(path)!r}; name them yourself: NAME=FILE, or a dict in Python"
            )
        found[stem] = path
    return found


def usual_metrics(counts: RankCounts) -> list[str]:
    """Return the metrics that are asked for by default: of the usual ones, all that can be."""
    if not counts.several or (counts.position > 0).all():
        return list(DEFAULT_METRICS)
    return [name for name in DEFAULT_METRICS if not _metrics.parse(name).family.uses_positions]
