"""What `estimate` and `compare` are given: sources of any kind, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import as_integer_array, as_rng, check_choice
from unsample.answers._result import DEFAULT_METRICS
from unsample.errors import DesignError, InputError
from unsample.evidence import (
    NEGATIVES,
    WHOLE,
    ItemCounts,
    ModelCounts,
    RankCounts,
    Targets,
    check_ties,
)
from unsample.metrics import Metric
from unsample.tables import (
    Asked,
    Read,
    is_table,
    read_counts,
    read_data_sets,
    read_models,
)

#: How ranks are read unless it is said otherwise.
USUAL = Read()
#: Columns by which a mapping is known to be one table, and not a table for each name.
_TELLING = ("rank", "score", "bin")
#: The kind of evaluation in which other relevant items are left out when a target is ranked.
GRAPH = "graph"


@dataclass(frozen=True, eq=False)
class Given:
    """What holds for all sources: their design, and how they are read."""

    items: npt.ArrayLike | None = None
    sampled: npt.ArrayLike | None = None
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None
    replacement: bool = True
    negatives: str = "own"
    kind: str | None = None
    read: Read = USUAL

    def __post_init__(self) -> None:
        check_choice("negatives", self.negatives, NEGATIVES)
        check_ties(self.read.ties, whole=True)
        as_rng(self.read.rng)

    @property
    def filtered(self) -> bool:
        """Return whether metrics are per target, as in knowledge graphs."""
        return self.kind == GRAPH

    def sources(self, given: Any) -> dict[str, Any] | None:
        """Return the source of each name; None where one source is given for all."""
        named = self.read.columns or {}
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
            return dict(read_counts(given, self._asked(by)))
        if by is not None:
            raise InputError(f"by must be left out with {_kind(given)}, which have no columns")
        told = {"items": self.items, "sampled": self.sampled, "users": self.users}
        extra = [name for name, value in told.items() if value is not None]
        extra += ["negatives"] if self.negatives != "own" else []
        if extra and isinstance(given, RankCounts | Targets):
            kind = _kind(given)
            raise InputError(f"{' and '.join(extra)} must be left out with {kind}, which know it")
        return {"": self._counts(given)}

    def _counts(self, source: Any, name: str = "") -> RankCounts:
        if is_table(source):
            return _only(read_counts(source, self._asked()), name)
        found = self.targets(source, name)
        return found if isinstance(found, RankCounts) else found.counts

    def models(self, table: Any, by: str) -> ModelCounts:
        """Return the counts of the models of one table, and of each two of them."""
        return read_counts(table, self._asked(by, runs=True), pair=True)

    def data_sets(self, table: Any, across: str, by: str) -> dict[str, ModelCounts]:
        """Return the counts of the models of each data set of one table."""
        if not is_table(table):
            raise InputError(
                f"across must come with a table or a dict of data sets, got {type(table).__name__}"
            )
        return read_data_sets(table, self._asked(by, runs=True), across=across)

    def tables(self, sources: Mapping[str, Any]) -> ModelCounts | dict[str, Targets]:
        """Return the counts of models with a table each, by one query.

        Without users, these are their targets, which are matched by their order.
        """
        return read_models(sources, self._asked())

    def targets(self, source: Any, name: str = "") -> Targets | RankCounts:
        """Return the targets of one source that is no table, or its counts if it holds no more."""
        if isinstance(source, RankCounts | Targets):
            return source
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
        if self.negatives != "own":
            shared = ItemCounts.without_outcomes(int(np.max(self.sampled)))  # type: ignore[arg-type]
        what = f"ranks of {name}" if name else "ranks"
        return Targets(
            as_integer_array(what, source, hint=WHOLE).astype(np.int64),
            self.items,  # type: ignore[arg-type]
            self.sampled,  # type: ignore[arg-type]
            users,
            self.replacement,
            filtered=self.filtered,
            shared=shared,
        )

    def _asked(self, by: str | None = None, *, runs: bool = False) -> Asked:
        """Return what is asked of a table."""
        if self.users is not None:
            raise InputError("users must be left out with a table; give it a column user")
        return Asked(
            self.items,
            self.sampled,
            self.read,
            by,
            self.replacement,
            self.filtered,
            self.negatives,
            runs,
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


def possible_metrics(
    metrics: str | Metric | Iterable[str | Metric], counts: RankCounts
) -> str | Metric | Iterable[str | Metric]:
    """Return the metrics asked for; of the default ones, only those that the data can give."""
    if metrics is not DEFAULT_METRICS or not counts.several or (counts.place > 0).all():
        return metrics
    return [name for name in DEFAULT_METRICS if not _metrics.parse(name).family.uses_places]
