"""Write the page that lists every data set of the corpus: ``python tools/corpus_page.py``.

It reads the corpus, the further ranks beside the benchmarks, and what ``about.toml`` tells of each
data set. ``--check`` says whether the page is what would be written.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from page_tables import as_table, write_page

from unsample.lab.corpus import Corpus, RankSet, load_corpus

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "corpus.md"
ABOUT = ROOT / "src" / "unsample" / "lab" / "corpus" / "about.toml"
FURTHER = ("further_ranks.npz", "own_first_ranks.npz")
COLUMNS = (
    "data set",
    "family",
    "domain",
    "protocols",
    "targets",
    "items",
    "seen items of a user",
    "models",
    "source",
    "licence of the source",
)


def row(name: str, sets: list[RankSet], about: dict[str, str]) -> list[str]:
    """Return what the page tells of a data set."""
    largest = max(sets, key=lambda one: one.targets)
    kinds = sorted({one.kind for one in sets})
    seen = next((one.seen for one in sets if one.seen), ())
    return [
        name + (" (partial)" if sets[0].partial else ""),
        sets[0].family,
        about["domain"],
        ", ".join(kinds),
        f"{largest.targets:,}",
        f"{max(one.items for one in sets):,}",
        f"{seen[0]} to {seen[-1]}" if seen else "",
        " ".join(sorted({one.model for one in sets})),
        about["source"],
        about["licence"] or "none",
    ]


def tables(corpus: Iterable[RankSet]) -> dict[str, str]:
    """Return the table of all data sets."""
    about = tomllib.loads(ABOUT.read_text(encoding="utf-8"))
    of_data_set: dict[str, list[RankSet]] = {}
    for one in corpus:
        of_data_set.setdefault(one.dataset, []).append(one)
    rows = [row(name, sets, about[name]) for name, sets in sorted(of_data_set.items())]
    return {"corpus": as_table(COLUMNS, rows)}


def main() -> int:
    """Write the page, or compare it."""
    further = [Corpus.load(ROOT / "benchmarks" / name) for name in FURTHER]
    every = [one for corpus in (load_corpus(), *further) for one in corpus]
    check = "--check" in sys.argv[1:]
    same = write_page(PAGE, tables(every), check=check)
    return int(check and not same)


if __name__ == "__main__":
    sys.exit(main())
