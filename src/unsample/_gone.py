"""What version 0.3 no longer has, and what to write instead: one table, kept for this version only.

It holds what users of version 0.2 typed most: names, arguments, values and verbs, as they were
written. A module, a function, a choice or the command looks its own words up here before it says
that there is no such thing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from unsample.errors import GoneError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_GUIDED = "use design='guided', which keeps to a budget, or 'certified'"
_UNEQUAL = (
    "ranks tell metrics only if items were drawn uniformly: evaluate the model with "
    "unsample.evaluate; unsample.audit tells how items were drawn"
)
_INTERVAL = "intervals come from the prior, or are bounds: interval() and bounds() of an estimate"
_WEIGHTS = "all users count the same; estimate groups of users apart, and average their values"
_RECIPE = "docs/libraries.md has a recipe of three lines"

#: What went, as it was written -> what to write instead.
GONE: dict[str, str] = {
    "unsample.Shape": _INTERVAL,
    "estimate(shape=)": _INTERVAL,
    "estimate(errors=)": _INTERVAL,
    "estimate(probabilities=)": _UNEQUAL,
    "estimate(strata=)": _UNEQUAL,
    "estimate(weights=)": _WEIGHTS,
    "columns='weight'": _WEIGHTS,
    "columns='count'": "use RankCounts.from_ranks(ranks, count=...), or drop the column "
    "if it does not say how many targets a row stands for",
    "rows='comparisons'": "give ranks, with ties broken at random, or all scores (rows='scores')",
    "rows='lists'": "give a row for each listed item: user, item, score, target (rows='scores')",
    "estimate(filtered=)": "use kind='graph': other relevant items left out, metrics per target",
    "estimate(rng=)": "use read=unsample.Read(rng=...), which holds the seed and the tie rule",
    "estimate(pilot=)": "give unsample.exact the full ranks of those users, drawn at random",
    "compare(correction=)": "leave it out: verdicts are corrected for the pairs by Holm's steps",
    "compare(against=)": "use compare(...).gate(metric, baseline=...), or read the pairs you need",
    "compare(paired=)": "leave it out: users that models have in common are paired, and it is said",
    "method='smooth'": "use method='auto', or the paper's 'mle'",
    "method='map'": "use method='mle', whose number of iterations regularises",
    "unsample.designs.Adaptive": _GUIDED,
    "unsample.designs.Pilot": _GUIDED,
    "design='adaptive'": _GUIDED,
    "design='pilot'": _GUIDED,
    "design='auto'": "leave design out: scorers of whole rows are ranked in full",
    **{
        f"evaluate({name}=)": f"use run=unsample.Run({name}=...), which holds how the work is done"
        for name in ("batch", "workers", "device", "checkpoint", "progress")
    },
    "plan(compare=)": "use plan(difference=...): which design tells it apart, and at which cost",
    "plan(targets=)": "leave it out: costs of users with several targets are as many times as high",
    "plan(precision=)": "use error=, which evaluate takes too",
    "unsample.adapters.retrieval": "draw documents at random, and give the ranks among them to "
    "unsample.estimate with negatives='shared'; chosen documents tell nothing of the others",
    **{
        f"unsample.adapters.{name}": _RECIPE
        for name in ("cornac", "implicit", "ir_measures", "lightning", "ogb", "ranx", "rectools")
    },
    "unsample doctor": "pip list shows what is installed",
    "unsample learn": "use unsample.Prior.learn(...).save(path), and --prior path",
    "unsample bank": "see unsample.lab.bank.load_bank()",
    "unsample datasets": "use python -m unsample.lab fetch",
    "unsample evaluate": "use unsample.evaluate in Python",
}


def gone(what: str) -> str | None:
    """Return the sentence about what went, or None if there never was such a thing."""
    return f"{what} went with version 0.3; {GONE[what]}" if what in GONE else None


def no_attribute(module: str, name: str) -> Exception:
    """Return what to raise for a name that ``module`` does not have."""
    sentence = gone(f"{module}.{name}")
    if sentence is not None:
        return GoneError(sentence)
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def refuses_gone(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function say what to use instead of an argument that went."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        for name in kwargs:
            sentence = gone(f"{function.__qualname__}({name}=)")
            if sentence is not None:
                raise GoneError(sentence)
        return function(*args, **kwargs)

    return call
