"""What went with version 0.3, and what to use instead: one table, kept for this version only.

An old name, argument, value, verb or option gives its sentence, and nothing else is left of it.
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
_WEIGHTS = "all users count the same; estimate groups of users apart, and average their values"
_UNIFORM = "leave it out: items must be drawn uniformly, and unsample.audit tells whether they were"
_GRAPH = "use kind='graph': other relevant items left out, metrics per target"
_ONE_POOL = "say negatives='shared'; where each batch has its own items, intervals are then bounds"
_SHAPE = "leave it out: what intervals assume follows from candidates, and bounds assume nothing"
_INTERVAL = "intervals come from the prior, or are bounds: interval() and bounds() of an estimate"
_SEED = "use read=unsample.Read(rng=...), which holds the seed and the tie rule"
_PART = (
    "draw documents at random, and give the ranks among them to unsample.estimate with "
    "negatives='shared'; chosen documents tell nothing of the others"
)
_RUN = "use run=unsample.Run({}=...), which holds how the work is done"
_DIFFERENCE = "use plan(difference=...): which design tells it apart, and at which cost"

_RECIPE = "docs/libraries.md has a recipe"

_BY_CHANCE = "ask for {}, of which it is a linear map; docs/graphs.md has the formula"

_ONE_VALUE = "leave it out: models are compared by the posterior, printed numbers read by it"
_WHOLE = "leave it out: the tables are made whole, and each row names its own"
_OTHERS = "give sampled ranks to unsample.estimate; unsample.lab.load_ranks has the full ones"
_ONE_ERROR = "leave it out: methods give a value, and intervals belong to the metric"

#: Arguments of `evaluate` that its argument ``run`` holds.
_OF_RUN = ("batch", "workers", "device", "precision", "checkpoint", "progress")

#: What went, as it was written -> what to write instead.
GONE: dict[str, str] = {
    # Designs.
    "unsample.designs.Adaptive": _GUIDED,
    "unsample.designs.Pilot": _GUIDED,
    "design='adaptive'": _GUIDED,
    "design='pilot'": _GUIDED,
    "design='auto'": "leave design out: scorers of whole rows are ranked in full",
    "unsample.designs.Execution": "use unsample.Run",
    **{f"evaluate({name}=)": _RUN.format(name) for name in _OF_RUN},
    "evaluate(method=)": "use unsample.estimate(result.counts, method=...) after a fixed design",
    "estimate(pilot=)": "give unsample.exact the full ranks of those users, drawn at random",
    "unsample estimate --pilot": "give unsample.exact their full ranks, in Python",
    # Evidence.
    "unsample.adapters.retrieval": _PART,
    "estimate(probabilities=)": _UNEQUAL,
    "estimate(strata=)": _UNEQUAL,
    "estimate(exclude=)": "say with items how many candidates each target has",
    "estimate(weights=)": _WEIGHTS,
    "compare(weights=)": _WEIGHTS,
    "exact(weights=)": _WEIGHTS,
    "evaluate(weights=)": _WEIGHTS,
    "columns='weight'": _WEIGHTS,
    "estimate(filtered=)": _GRAPH,
    "compare(filtered=)": _GRAPH,
    "unsample estimate --filtered": "use --kind graph",
    "unsample compare --filtered": "use --kind graph",
    "estimate(pools=)": _ONE_POOL,
    "compare(pools=)": _ONE_POOL,
    "estimate(sampler=)": _UNIFORM,
    "unsample estimate --sampler": _UNIFORM,
    "estimate(shape=)": _SHAPE,
    "compare(shape=)": _SHAPE,
    "unsample estimate --shape": _SHAPE,
    "unsample compare --shape": _SHAPE,
    "published(shape=)": _SHAPE,
    "unsample published --shape": _SHAPE,
    "published(sampler=)": _UNIFORM,
    "unsample published --sampler": _UNIFORM,
    "compare(method=)": _ONE_VALUE,
    "unsample compare --method": _ONE_VALUE,
    "published(method=)": _ONE_VALUE,
    "unsample published --method": _ONE_VALUE,
    "estimate(rng=)": _SEED,
    "compare(rng=)": _SEED,
    "unsample estimate --probabilities": _UNEQUAL,
    "unsample estimate --exponent": _UNEQUAL,
    "unsample estimate --strata": _UNEQUAL,
    "unsample estimate --exclude": "say with --items how many candidates each target has",
    #
    # Planning.
    "plan(precision=)": "use error=, which evaluate takes too",
    "unsample plan --precision": "use --error",
    "plan(compare=)": _DIFFERENCE,
    "plan(power=)": _DIFFERENCE,
    "plan(repeats=)": "leave it out: nothing is repeated",
    "unsample plan --compare": "use --difference 5%, which asks the law of two models",
    "unsample plan --power": "use --difference 5%, which asks the law of two models",
    "unsample plan --repeats": "leave it out: nothing is repeated",
    "unsample compare --needed": "use unsample plan --difference 5%",
    # Errors.
    "estimate(errors=)": _ONE_ERROR,
    "estimate(resamples=)": _ONE_ERROR,
    "exact(resamples=)": _ONE_ERROR,
    "evaluate(resamples=)": _ONE_ERROR,
    "unsample estimate --errors": _ONE_ERROR,
    "unsample estimate --resamples": _ONE_ERROR,
    #
    # Metrics.
    "unsample.metrics.AHits": _BY_CHANCE.format("Hits@K"),
    "unsample.metrics.AMR": _BY_CHANCE.format("MR"),
    "unsample.metrics.AMRI": _BY_CHANCE.format("MR"),
    "unsample.metrics.AMRR": _BY_CHANCE.format("MRR"),
    "metrics='AHits'": _BY_CHANCE.format("Hits@K"),
    "metrics='AMR'": _BY_CHANCE.format("MR"),
    "metrics='AMRI'": _BY_CHANCE.format("MR"),
    "metrics='AMRR'": _BY_CHANCE.format("MRR"),
    #
    # Audit and estimators.
    "audit(popularity=)": "give what users have seen as exclude, which counts it",
    "audit(probabilities=)": "audit tells uniform draws from others, and tests no other law",
    "audit(users=)": "take the rows of exclude that belong to the lists: exclude[users]",
    "audit(level=)": "p-values are in the result, and its answers hold at 95 % together",
    "audit(rng=)": "nothing is drawn at random any more: leave it out",
    "unsample audit --popularity": "use --exclude, which counts it",
    "unsample audit --probabilities": "audit tells uniform draws from others alone",
    "unsample audit --exponent": "audit tells uniform draws from others alone",
    "unsample audit --level": "p-values are in the result, and its answers hold at 95 % together",
    "unsample audit --rng": "nothing is drawn at random any more: leave it out",
    "Estimate.interval(kind=)": "leave it out: there is one interval, and bounds() beside it",
    "unsample.Shape": _INTERVAL,
    "unsample.confidence": _INTERVAL,
    "unsample.estimators.Auto": "use method='auto' of unsample.estimate",
    "method='smooth'": "use method='auto', or the paper's 'mle'",
    #
    # Adapters.
    "unsample.adapters.ModelScores": "give evaluate a function, or an object with score_all(users)",
    "unsample.adapters.cornac": f"give evaluate its vectors; {_RECIPE}",
    "unsample.adapters.graphs": f"use unsample.adapters.pykeen, or evaluate; {_RECIPE}",
    "unsample.adapters.implicit": f"give evaluate the model itself; {_RECIPE}",
    "unsample.adapters.ir_measures": f"give its rows to unsample.adapters.trec; {_RECIPE}",
    "unsample.adapters.lenskit.full": "give the counts of its targets(...) to unsample.estimate",
    "unsample.adapters.lightning": f"use unsample.adapters.torchmetrics; {_RECIPE}",
    "unsample.adapters.ogb": f"give its scores to unsample.sampled_ranks; {_RECIPE}",
    "unsample.adapters.ranx": f"give its dicts to unsample.adapters.trec; {_RECIPE}",
    "unsample.adapters.recbole.published": "give the numbers to unsample.published",
    "unsample.adapters.recbole.run": "use unsample.adapters.recbole.watch(trainer)",
    "unsample.adapters.rectools": f"give evaluate its vectors; {_RECIPE}",
    "unsample.designs.SampledRanks": "unsample.sampled_ranks returns the ranks alone",
    "unsample.designs.ranks_against": "give the scores to unsample.sampled_ranks",
    # Comparisons and pages.
    "Comparison.supported_from(proven=)": "leave it out: every verdict rests on the same chance",
    "Comparison.to_frame(table=)": "Comparison.to_dict() has the models, as standings",
    "unsample.pages": "use unsample.show, which has the same functions",
    #
    # Command and laboratory.
    "unsample.lab.evaluate": "use unsample.evaluate, or design.simulate on known ranks",
    "unsample doctor": "pip list shows what is installed",
    "unsample learn": "use python -m unsample.lab learn, or unsample.Prior.learn",
    "unsample bank": "use python -m unsample.lab bank",
    "unsample datasets": "use python -m unsample.lab fetch",
    "unsample evaluate": "use unsample.evaluate in Python",
    "unsample reproduce --resume": "run it again: all data sets take about a minute",
    "unsample reproduce --force": "leave it out: the tables in the folder are replaced",
    "unsample reproduce --retrain": "use python -m unsample.lab train, which writes exact ranks",
    "unsample reproduce --recommender": _WHOLE,
    "unsample reproduce --candidates": _WHOLE,
    "unsample reproduce --estimator": _OTHERS,
    "unsample reproduce --sampled": _OTHERS,
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
