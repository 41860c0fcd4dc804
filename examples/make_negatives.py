"""Makes negatives.csv as a faulty sampler did: draw twice as many, sort, keep the first half."""

import sys
from pathlib import Path

import numpy as np

import unsample

ITEMS, SAMPLED, USERS = 500, 20, 200
rng = np.random.default_rng(2021)
rows = ["user,item"]
for user in range(USERS):
    drawn = np.unique(rng.integers(ITEMS, size=2 * SAMPLED))
    rows += [f"{user},{item}" for item in drawn[:SAMPLED]]
path = Path(*sys.argv[1:] or [Path(__file__).with_name("negatives.csv")])
path.write_text("\n".join(rows) + "\n", encoding="ascii")
print(unsample.audit(path, items=ITEMS))  # noqa: T201
