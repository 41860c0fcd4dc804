"""Measures for ir_measures that tell the numbers on the whole collection.

A run that ranks each query's relevant documents among documents drawn at random is measured against
those alone. `full` makes measures of the same run against all documents, which go into
``ir_measures.calc_aggregate`` beside the others. ir_measures knows them as the measure ``Full`` and
the provider ``unsample`` from the first call on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from unsample._checks import check_choice, check_integer, check_level
from unsample.adapters import trec
from unsample.adapters._tasks import require
from unsample.answers import DEFAULT_METHOD, Estimates, estimate
from unsample.errors import DesignError, InputError

__all__ = ["full"]

#: Measures of ir_measures that estimates are made of, and our names of them.
_OURS = {"nDCG": "NDCG", "R": "Recall", "P": "Precision", "RR": "MRR", "AP": "AP", "Success": "HR"}
_ENDS = ("value", "low", "high")


def full(
    measure: Any,
    *,
    items: int,
    sampled: int | None = None,
    candidates: str | None = None,
    method: str = DEFAULT_METHOD,
    level: float = 0.95,
) -> tuple[Any, Any, Any]:
    """Return measures of the whole collection: the estimate, and both ends of its interval.

    They are numbers of a run. Of single queries they are NaN: one query's rank among sampled
    documents does not tell its rank among all.

    Parameters
    ----------
    measure
        The measure that is meant, such as ``nDCG @ 10`` or ``"R@100"``: nDCG, R, P, RR, AP or
        Success. Relevant documents count alike, so that nDCG needs judgements of one grade.
    items
        Documents in the collection that could have been sampled for a query, all relevant ones
        included.
    sampled
        How many documents were sampled for a query; by default what the run holds.
    candidates, method
        As in `unsample.estimate`.
    level
        The level of the interval.
    """
    kind = _registered()
    given: dict[str, Any] = {
        "items": check_integer("items", items, minimum=2, error=DesignError),
        "sampled": sampled,
        "candidates": candidates,
        "method": method,
        "level": check_level(level),
    }
    if sampled is not None:
        given["sampled"] = check_integer("sampled", sampled, minimum=1, error=DesignError)
    stated = {name: value for name, value in given.items() if value is not None}
    found = [kind(measure=str(measure), **stated, end=end) for end in _ENDS]
    _our_name(found[0])
    return found[0], found[1], found[2]


def _our_name(measure: Any) -> tuple[str, int]:
    """Return our name of what a measure is about, and the lowest relevance that counts."""
    library = require("ir_measures", "ir_measures")
    try:
        asked = library.parse_measure(measure["measure"])
        asked.validate_params()
    except (AssertionError, NameError, ValueError) as problem:
        raise InputError(
            f"measure must be one of ir_measures, got {measure['measure']!r}: {problem}"
        ) from problem
    cutoff, lowest = asked.params.get("cutoff"), asked.params.get("rel", 1)
    if asked.NAME not in _OURS or not asked.params.keys() <= {"cutoff", "rel"}:
        raise InputError(
            f"measure must be one of {', '.join(_OURS)}, with no parameters but a cutoff and rel, "
            f"got {asked}"
        )
    return _OURS[asked.NAME] + (f"@{cutoff}" if cutoff else ""), lowest


def _estimates(
    measures: Iterable[Any], qrels: Mapping[str, Mapping[str, int]], run: Any
) -> Iterator[tuple[Any, float]]:
    """Give each measure its number; those that ask the same of the run share one estimate."""
    groups: dict[tuple[Any, ...], list[tuple[Any, str]]] = {}
    for measure in measures:
        name, lowest = _our_name(measure)
        design = (*(measure[key] for key in ("items", "sampled", "candidates", "method")), lowest)
        groups.setdefault(design, []).append((measure, name))
    for design, members in groups.items():
        result = _estimate(design, {name for _, name in members}, qrels, run)
        for measure, name in members:
            found = result[name]
            end = _ENDS.index(check_choice("end", measure["end"], _ENDS))
            yield measure, (found.value, *found.interval(measure["level"]))[end]


def _estimate(
    design: tuple[Any, ...], names: set[str], qrels: Mapping[str, Mapping[str, int]], run: Any
) -> Estimates:
    items, sampled, candidates, method, lowest = design
    lacking = [q for q, docs in qrels.items() if not any(r >= lowest for r in docs.values())]
    if lacking:
        raise InputError(
            f"qrels must hold a document of relevance {lowest} or more for each query, got none "
            f"for {len(lacking)} queries, the first {lacking[0]}; ir_measures counts such queries "
            "as 0: leave them out"
        )
    found = trec.targets(run, qrels, items=items, sampled=sampled, relevance=lowest)
    if found.relevance is not None and any(name.startswith("NDCG") for name in names):
        raise InputError(
            "qrels must be of one grade for nDCG on the whole collection, got several; set them "
            "to 1, or use R, P, RR, AP or Success"
        )
    _check_own_documents(qrels, run, items)
    return estimate(
        found.counts, metrics=sorted(names), candidates=candidates, method=method, resamples=0
    )


def _check_own_documents(
    qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Mapping[str, float]], items: int
) -> None:
    """Refuse documents that queries share: their ranks depend on each other."""
    lists = [run[query].keys() - docs.keys() for query, docs in qrels.items()]
    # The share of the collection that drawing anew for each query leaves out.
    left_out = math.prod(1 - min(1.0, len(docs) / items) for docs in lists)
    met = len(set().union(*lists))
    if met < 0.75 * items * (1 - left_out) and sum(map(len, lists)) >= 20:
        raise DesignError(
            f"documents must be drawn anew for each query, got {met:,} different ones in lists of "
            f"{sum(map(len, lists)):,} rows; where queries share them, give the scored rows to "
            'unsample.estimate(..., negatives="shared")'
        )


@cache
def _registered() -> Any:
    """Make the measure, and make it and its provider known to ir_measures; return the measure."""
    library = require("ir_measures", "ir_measures")
    info = library.ParamInfo

    class Whole:
        """The one number of the run, among the NaN of its queries."""

        number = math.nan

        def add(self, value: float) -> None:
            if not math.isnan(value):
                self.number = value

        def result(self) -> float:
            return self.number

    class Full(library.Measure):  # type: ignore[misc,name-defined]
        """A measure of the whole collection, by a run of sampled documents."""

        __name__ = NAME = "Full"
        PRETTY_NAME = "Measure of the whole collection"
        SHORT_DESC = "What a measure would be if all documents were ranked."
        DEFAULT = math.nan
        SUPPORTED_PARAMS = {  # noqa: RUF012  # as ir_measures has it
            "measure": info(dtype=str, required=True, desc="the measure that is meant"),
            "items": info(dtype=int, required=True, desc="documents in the collection"),
            "sampled": info(dtype=int, default=None, desc="documents sampled for a query"),
            "candidates": info(dtype=str, default=None, desc="as in unsample.estimate"),
            "method": info(dtype=str, default=DEFAULT_METHOD, desc="as in unsample.estimate"),
            "level": info(dtype=float, default=0.95, desc="level of the interval"),
            "end": info(dtype=str, choices=_ENDS, default="value", desc="value, low or high"),
        }

        def aggregator(self) -> Any:
            return Whole()

    class FullEvaluator(library.Evaluator):  # type: ignore[misc,name-defined]
        def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
            super().__init__(measures, set(qrels))
            self.qrels = qrels

        def _iter_calc(self, run: Any) -> Iterator[Any]:
            lists = library.util.RunConverter(run).as_dict_of_dict()
            for measure, number in _estimates(self.measures, self.qrels, lists):
                yield library.Metric("all", measure, number)

    class FullProvider(library.Provider):  # type: ignore[misc,name-defined]
        NAME = "unsample"
        SUPPORTED_MEASURES = [Full()]  # noqa: RUF012  # as ir_measures has it

        def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Any:
            return FullEvaluator(measures, library.util.QrelsConverter(qrels).as_dict_of_dict())

    library.measures.register(Full())
    library.DefaultPipeline.providers.append(library.providers.register(FullProvider()))
    return Full()
