"""``unsample published``: numbers of a paper in, full-catalogue metrics or verdicts out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from unsample.cli import options
from unsample.cli.console import verb
from unsample.cli.options import option
from unsample.errors import InputError, UnsampleError

if TYPE_CHECKING:
    from unsample.answers import Comparison, Published

_ONE, _SEVERAL = "METRIC=VALUE", "NAME:METRIC=VALUE,..."
#: A model's numbers: its name, how many items were sampled for it, metrics and values.
_MODEL = re.compile(r"(?:(?P<name>[^=]+?):)??(?:(?P<sampled>\d+):)?(?P<numbers>[^:=]+=[^=].*)")


@verb(
    click.Argument(["numbers"], metavar=f"{_ONE}...", nargs=-1, required=True),
    options.items(required=True),
    options.SAMPLED,
    option("--users", "M", "Users that the numbers are means over.", type=int, required=True),
    options.METRICS,
    options.CANDIDATES,
    options.KIND,
    options.PRIOR,
    options.REPLACEMENT,
    options.flag("--percent", "The values are percentages."),
    option("--runs", "R", "Runs that the numbers are means of.", type=int, default=1),
    options.PLOT,
    examples=(
        "unsample published HR@10=0.690 NDCG@10=0.412 --items 3706 --sampled 99 --users 6040",
        "unsample published HR@10=69.0 --percent --items 3706 --sampled 99 --users 6040 -m HR@50",
        "unsample published A:HR@10=0.730 B:HR@10=0.824 --items 3706 --sampled 99 --users 6040",
    ),
)
def published(
    numbers: tuple[str, ...],
    items: int,
    sampled: int | None,
    metrics: tuple[str, ...],
    **asked: Any,
) -> Published | Comparison:
    """Estimate full-catalogue metrics from the numbers in a paper.

    Give sampled metrics as printed, with all their digits: HR@10=0.690 is known to within 0.0005.
    A metric without @K looks at all sampled items. To compare models, give each as
    NAME:METRIC=VALUE,... or, where samples differ, NAME:SAMPLED:METRIC=VALUE,...
    """
    models = _models(numbers, sampled)
    from unsample import answers

    found = {}
    for name, (size, printed) in models.items():
        try:
            found[name] = answers.published(
                printed,
                items=items,
                sampled=size,
                metrics=metrics or answers.DEFAULT_METRICS,
                **asked,
            )
        except UnsampleError as problem:
            # Which of the papers it is about.
            problem.args = (f"{name}: {problem}" if len(models) > 1 else str(problem),)
            raise
    return found.popitem()[1] if len(found) == 1 else answers.compare(found)


def _models(words: tuple[str, ...], sampled: int | None) -> dict[str, tuple[int, dict[str, str]]]:
    """Return how many items were sampled and what is printed, by model; one may have no name."""
    sizes: dict[str, int] = {}
    given: dict[str, list[str]] = {}
    for word in words:
        match = _MODEL.fullmatch(word)
        if match is None:
            raise InputError(f"a number must be given as {_ONE}, such as HR@10=0.69, got {word!r}")
        name, size = (match["name"] or "").strip(), match["sampled"] or sampled
        if size is None:
            raise InputError("--sampled must be given with printed numbers, got none; such as 99")
        if sizes.setdefault(name, int(size)) != int(size):
            raise InputError(f"{name} must have one sample size, got {sizes[name]} and {size}")
        given.setdefault(name, []).extend(match["numbers"].split(","))
    if "" in given and len(given) > 1:
        one = given[""][0]
        raise InputError(f"numbers must all have a name ({_SEVERAL}) or none, got {one!r}")
    form = f"{_ONE}, such as HR@10=0.69"
    return {
        name: (sizes[name], options.named(each, "a number", form)) for name, each in given.items()
    }
