"""Write the tables of README: EASE on ml-1m by every method, and three models of another author.

``python tools/readme_tables.py`` reads what ships: the sampled ranks in examples/ease.csv, the full
ranks that they were drawn from, and docs/field/; ``--check`` says whether README has what is found
now. The prior is the one that was learned without ml-1m and its family.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

import field
from page_tables import as_table, write_page

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab import load_ranks
from unsample.posterior import Prior

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "README.md"
SAMPLE = ROOT / "examples" / "ease.csv"
METRICS = ("Recall@10", "NDCG@10", "Recall@50")
#: What a reader calls each method.
METHODS = {
    "naive": "`naive`: among 100 items",
    "bv": "`bv`",
    "mes": "`mes`",
    "mle": "`mle`",
    "auto": "**`auto`**",
}
#: The method whose interval is shown: it is the library's, and no other has one of its own.
_WITH_INTERVAL = "auto"


def table_of_methods() -> str:
    """Return EASE's metrics on ml-1m by each method, and the truth, from the full ranks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        result = unsample.estimate(
            str(SAMPLE),
            sampled=99,
            protocol="unseen",
            metrics=METRICS,
            method=list(METHODS),
            prior=Prior.shipped(without="ml-1m"),
        )
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    truth = unsample.exact(full.ranks, items=full.items, metrics=METRICS)
    rows = []
    for method, title in METHODS.items():
        cells = [_cell(result[metric, method]) for metric in METRICS]
        rows.append([title, *cells])
    rows.append(["the truth: among all items", *(f"{truth[name].value:.3f}" for name in METRICS)])
    return as_table(("EASE on ml-1m", *METRICS), rows)


def _cell(estimate: unsample.Estimate) -> str:
    """Return an estimate, with its interval if it is of the method that has one of its own."""
    if estimate.method != _WITH_INTERVAL:
        return f"{estimate.value:.3f}"
    low, high = estimate.interval()
    return f"{estimate.value:.3f} ({low:.3f} .. {high:.3f})"


def tables() -> Mapping[str, str]:
    """Return all tables of the page by their names."""
    return {
        "ease": table_of_methods(),
        "field-equals": field.table_of_equals(field.read_boards()),
    }


def main() -> int:
    """Write the tables, or compare them."""
    check = "--check" in sys.argv[1:]
    same = write_page(PAGE, tables(), check=check)
    return int(check and not same)


if __name__ == "__main__":
    sys.exit(main())
