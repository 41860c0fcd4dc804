"""``unsample published``: numbers of papers in, full-catalogue metrics or verdicts out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from unsample._files import check_apart, is_file
from unsample.cli import options
from unsample.cli.console import verb
from unsample.cli.options import option
from unsample.errors import InputError, UnsampleError

if TYPE_CHECKING:
    from unsample.questions.compare.result import Comparison
    from unsample.questions.published.leaderboard import Leaderboard
    from unsample.questions.published.result import Published

#: The forms of a number of one paper, and of the numbers of one of several.
_ONE = "METRIC=VALUE"
_SEVERAL = "NAME:METRIC=VALUE,..."
#: A model's numbers: its name, how many items were sampled for it, metrics and values.
_MODEL = re.compile(r"(?:(?P<name>[^=]+?):)??(?:(?P<sampled>\d+):)?(?P<numbers>[^:=]+=[^=].*)")

#: A number with a decimal comma, which ends there or is followed by another metric.
_DECIMAL_COMMA = re.compile(r"=\s*\d+,\d+\s*(?:,|%|$)")


@verb(
    click.Argument(["numbers"], metavar=f"{_ONE}... | TABLE", nargs=-1, required=True),
    options.items(),
    options.SAMPLED,
    option("--users", "M", "Users that the numbers are means over.", type=int),
    options.METRICS,
    options.PROTOCOL,
    options.SEEN,
    options.LEVEL,
    options.PRIOR,
    options.WITHOUT,
    options.negatives(
        "own: items were drawn for each target, uniformly at random. Others, as by popularity, are "
        "refused."
    ),
    options.REPLACEMENT,
    options.flag("--percent", "The values are percentages."),
    option("--runs", "R", "Runs that the numbers are means of.", type=int, default=1),
    options.PLOT,
    options.CHART,
    options.flag("--csv", "Print the rows as CSV."),
    examples=(
        "unsample published HR@10=0.690 NDCG@10=0.412 --items 3706 --sampled 99 --users 6040",
        "unsample published HR@10=69.0 --percent --items 3706 --sampled 99 --users 6040 -m HR@50",
        "unsample published A:HR@10=0.730 B:HR@10=0.824 --items 3706 --sampled 99 --users 6040",
        "unsample published leaderboard.csv --items 3706 --sampled 99 --users 6040 -m NDCG@10",
    ),
)
def published(
    numbers: tuple[str, ...],
    sampled: int | None,
    metrics: tuple[str, ...],
    **asked: Any,
) -> Published | Comparison | Leaderboard:
    """Estimate full-catalogue metrics from the numbers in a paper.

    The paper must have drawn its sampled items uniformly at random, for each target.

    Give sampled metrics as printed, with all their digits: HR@10=0.690 is known to within 0.0005.
    A metric without @K looks at all sampled items. To compare models, give each as
    NAME:METRIC=VALUE,... or, where samples differ, NAME:SAMPLED:METRIC=VALUE,...

    Or give a TABLE of models, a file: the column model and a column for each metric, or the columns
    model, metric and value. Its columns dataset, items, sampled and users say where these differ.
    """
    negatives = options.drawn(asked)
    asked["prior"] = options.prior(asked)
    if _is_table(numbers):
        from unsample.questions.published import ask

        return ask.published(
            numbers[0], sampled=sampled, metrics=metrics or None, negatives=negatives, **asked
        )
    for name in ("items", "users"):
        if asked[name] is None:
            raise InputError(f"--{name} must be given with printed numbers, got none")
    models = _models(numbers, sampled)
    from unsample.questions.compare.ask import compare
    from unsample.questions.published import ask

    results: dict[str, Published] = {}
    for name, (size, printed) in models.items():
        try:
            results[name] = ask.published(
                printed,
                sampled=size,
                metrics=metrics or None,
                negatives=negatives,
                **asked,
            )
        except UnsampleError as problem:
            # The message names the paper.
            problem.args = (f"{name}: {problem}" if len(models) > 1 else str(problem),)
            raise
    if len(results) == 1:
        (result,) = results.values()
        return result
    return compare(results, level=asked["level"])


def _is_table(words: tuple[str, ...]) -> bool:
    """Return whether the words are a table and no numbers; refuse to write over the table."""
    if len(words) != 1:
        return False
    # The name of a metric without its value is a slip, and no file.
    slip = "=" in words[0] or "@" in words[0] or not any(sign in words[0] for sign in "./-")
    if slip and not is_file(words[0]):
        return False
    written = click.get_current_context().params
    for name in ("html", "plot"):
        if written[name] is not None:
            check_apart(f"--{name}", written[name], [words[0]])
    return True


def _models(words: tuple[str, ...], sampled: int | None) -> dict[str, tuple[int, dict[str, str]]]:
    """Return the number of sampled items and the printed numbers of each model.

    A single model may have the name ``""``.
    """
    sizes: dict[str, int] = {}
    numbers: dict[str, list[str]] = {}
    for word in words:
        match = _MODEL.fullmatch(word)
        if _DECIMAL_COMMA.search(word):
            raise InputError(
                f"a number must have a decimal point, got {word!r}; write 0.71 for 0,71"
            )
        if match is None:
            raise InputError(f"a number must be given as {_ONE}, such as HR@10=0.69, got {word!r}")
        name = (match["name"] or "").strip()
        size = match["sampled"] or sampled
        if size is None:
            raise InputError("--sampled must be given with printed numbers, got none; such as 99")
        if sizes.setdefault(name, int(size)) != int(size):
            raise InputError(f"{name} must have one sample size, got {sizes[name]} and {size}")
        numbers.setdefault(name, []).extend(match["numbers"].split(","))
    if sampled is not None and sampled not in sizes.values():
        listed = ", ".join(f"{name or 'the numbers'} {size}" for name, size in sizes.items())
        raise InputError(f"--sampled must be left out where all have their own, got {listed}")
    if "" in numbers and len(numbers) > 1:
        unnamed = numbers[""][0]
        raise InputError(f"numbers must all have a name ({_SEVERAL}) or none, got {unnamed!r}")
    form = f"{_ONE}, such as HR@10=0.69"
    return {
        name: (sizes[name], options.named(printed, "a number", form=form))
        for name, printed in numbers.items()
    }
