"""``unsample published``: numbers of a paper in, full-catalogue metrics or verdicts out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from unsample._rules import LARGEST_CATALOGUE, check_integer
from unsample.cli import options
from unsample.cli.console import result_verb
from unsample.errors import DesignError, InputError, UnsampleError

if TYPE_CHECKING:
    from unsample.answers import Comparison, Published

_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_ONE, _SEVERAL = "METRIC=VALUE", "NAME:SAMPLED:METRIC=VALUE,..."
#: What models are compared on unless metrics are named: few hold at small K, more at large.
_FAMILIES, _CUTOFFS = ("Recall", "NDCG"), (10, 20, 50, 100)


@result_verb
def published_command(
    numbers: Annotated[
        list[str],
        typer.Argument(
            metavar=f"{_ONE}...",
            help="Sampled metrics as printed, with all their digits: HR@10=0.690 is known to "
            "within 0.0005. A metric without @K looks at all sampled items. To compare models, "
            f"give each as {_SEVERAL}",
        ),
    ],
    items: options.RequiredItems,
    users: Annotated[int, options.option("M", "Users that the printed numbers are means over.")],
    sampled: options.Sampled = None,
    metrics: options.Metrics = None,
    replacement: options.Replacement = True,
    candidates: options.Candidates = None,
    prior: options.Prior = "shipped",
    kind: options.Kind = None,
    percent: Annotated[
        bool, options.option(None, "The values are percentages.", None, "--percent")
    ] = False,
    decimals: Annotated[
        int | None, options.option("D", "Decimals that are printed. [default: those given]")
    ] = None,
    runs: Annotated[int, options.option("R", "Runs that the numbers are means of.")] = 1,
) -> Published | Comparison:
    """Estimate full-catalogue metrics from the numbers in a paper.

    **Examples**

    `unsample published --items 3706 --sampled 99 --users 6040 HR@1=0.180 HR@10=0.690 NDCG@10=0.412`

    `unsample published --items 3706 --sampled 99 --users 6040 HR@10=69.0 --percent -m HR@50 --json`

    `unsample published --items 3706 --users 6040 NCF:99:HR@10=0.730,NDCG@10=0.447
    SASRec:100:HR@10=0.8245,NDCG@10=0.5905`
    """
    models = _models(numbers, sampled)
    wanted = metrics
    if len(models) > 1 and not metrics:
        wanted = [f"{name}@{k}" for name in _FAMILIES for k in _CUTOFFS if k < items]
    from unsample.answers import DEFAULT_METRICS, compare, published

    found = {}
    for name, (negatives, given) in models.items():
        try:
            found[name] = published(
                given,
                items=items,
                sampled=negatives,
                users=users,
                runs=runs,
                metrics=wanted or DEFAULT_METRICS,
                replacement=replacement,
                candidates=candidates,
                prior=options.prior_of(prior),
                kind=kind,
                percent=percent,
                decimals=decimals,
            )
        except UnsampleError as problem:
            # Which of the papers it is about.
            problem.args = (f"{name}: {problem}" if name else str(problem),)
            raise
    return found[""] if "" in found else compare(found)


def _models(words: list[str], sampled: int | None) -> dict[str, tuple[int, dict[str, str]]]:
    """Return how many items were sampled and what is printed, by model; one has no name."""
    several = [word for word in words if ":" in word]
    if not several:
        if sampled is None:
            raise DesignError("sampled must be given with printed numbers, got none (--sampled 99)")
        return {"": (sampled, _numbers(words))}
    if len(several) < len(words):
        other = next(word for word in words if ":" not in word)
        raise InputError(
            f"numbers must all be {_ONE} (of one model) or all {_SEVERAL}, got {other!r} and "
            f"{several[0]!r}"
        )
    if sampled is not None:
        raise InputError(f"sampled must be left out with {_SEVERAL}, which says it for each model")
    models: dict[str, tuple[int, dict[str, str]]] = {}
    for word in several:
        # A name may hold colons.
        name, *rest = (part.strip() for part in word.rsplit(":", 2))
        if len(rest) < 2 or not name or not _WHOLE.fullmatch(rest[0]):
            raise InputError(
                f"a model must be given as {_SEVERAL}, such as NCF:99:HR@10=0.730,NDCG@10=0.447, "
                f"got {word!r}"
            )
        if name in models:
            raise InputError(f"a model must be given once by each name, got {name!r} twice")
        negatives = check_integer(
            f"sampled of {name}", int(rest[0]), minimum=1, maximum=LARGEST_CATALOGUE
        )
        models[name] = negatives, _numbers(rest[1].split(","))
    if len(models) < 2:
        raise InputError(
            f"models must be at least two to be compared, got {name!r} alone; for one, say "
            f"--sampled {rest[0]} {rest[1].replace(',', ' ')}"
        )
    return models


def _numbers(words: list[str]) -> dict[str, str]:
    return options.named(words, "a number", f"{_ONE}, such as HR@10=0.69")
