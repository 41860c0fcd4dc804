"""Time and memory of an audit: 10^6 lists of 100 negatives. Prints one line."""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import unsample


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=int, default=1_000_000)
    parser.add_argument("--sampled", type=int, default=100)
    parser.add_argument("--items", type=int, default=30_000)
    options = parser.parse_args()
    shape = (options.lists, options.sampled)
    lists = np.random.default_rng(0).integers(options.items, size=shape, dtype=np.int32)
    before, started = _peak(), time.perf_counter()
    result = unsample.audit(lists, items=options.items)
    took = time.perf_counter() - started
    print(f"{result.draws:,} draws, {result.law}: {took:.1f} s, {_peak() - before:.0f} MB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
