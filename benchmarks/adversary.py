"""How often intervals and bounds hold in worlds at random: the table of docs/reliability.md.

    python -m benchmarks.adversary --worlds 600 --workers 16

One row for each kind of world in ``tests/adversary.py``. The seeds are others than those of the
validity tier.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from tests.adversary import KINDS, Trial

_SEED = 1


def trial(kind: str, number: int) -> Trial:
    """Draw one world and ask about it."""
    return KINDS[kind](kind, np.random.default_rng([_SEED, number, *kind.encode()]))


def share(held: list[bool]) -> str:
    """Return how many of them hold, of how many."""
    return f"{np.mean(held):.3f} of {len(held)}" if held else "-"


def main() -> None:
    """Ask about so many worlds of each kind, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(
        "| kind | bounds hold | intervals hold, laws of the shape | other laws: held, or warned |"
    )
    print("| --- | ---: | ---: | ---: |")
    slowest = 0.0
    with ProcessPoolExecutor(given.workers) as pool:
        for kind in KINDS:
            found = list(pool.map(partial(trial, kind), range(given.worlds), chunksize=5))
            cells = (
                share([each.bounded for each in found]),
                share([each.covered for each in found if each.keeps]),
                share([each.covered or each.warned for each in found if not each.keeps]),
            )
            print(f"| {kind} | {' | '.join(cells)} |", flush=True)
            slowest = max(slowest, *(each.seconds for each in found))
    print(f"slowest answer: {slowest:.1f} s of processor time")


if __name__ == "__main__":
    main()
