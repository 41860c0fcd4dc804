"""``unsample plan``: how to evaluate, before anything is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample.cli import options
from unsample.cli.console import verb
from unsample.cli.options import option

if TYPE_CHECKING:
    from unsample.questions.plan.result import Plan


@verb(
    options.items(required=True),
    option("--users", "M", "Users to evaluate.", type=int, required=True),
    options.metrics("The metric that matters.", default="NDCG@10"),
    option(
        "--error",
        "SHARE",
        "Half-width of the interval sought, as a share of the metric: 0.05 is ±5 % of it.  "
        "[default: 0.05]",
        type=float,
    ),
    option("--difference", "D", "Instead of --error: a difference of two models, as 0.01 or 5%."),
    option("--budget", "B", "Scores in total.  [default: what each design needs]", type=int),
    option(
        "--recall",
        "SHARE",
        "A guess of the full Recall@K.  [default: 0.1, in small catalogues more]",
        type=float,
    ),
    option(
        "--odds",
        "ODDS",
        "How good the guide is: odds that an item that beats the target is scored before one that "
        "does not. Random order has 1, popularity on ml-1m 19.  [default: 10]",
        type=float,
    ),
    options.PROTOCOL,
    examples=(
        "unsample plan --items 25815 --users 25677 --error 0.02",
        "unsample plan --items 3706 --users 6040 -m Recall@50 --budget 600000",
        "unsample plan --items 3706 --users 6040 --difference 20% --odds 19",
    ),
)
def plan(**asked: Any) -> Plan:
    """Plan an evaluation: what each design costs, and how sure the metric would be."""
    from unsample.questions.plan import ask

    return ask.plan(**asked)
