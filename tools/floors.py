"""Train every recommender on ml-1m and compare it with its floor: ``make floors``.

Needs ml-1m at hand (``UNSAMPLE_DATA``, or ``unsample datasets fetch ml-1m``); prints minutes.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from unsample.designs import exact_ranks, ranks_against
from unsample.lab.datasets import standard_split
from unsample.lab.recommenders import create
from unsample.metrics import NDCG

#: NDCG@10 among all items that the user does not have.
FLOORS = {
    "popularity": 0.0,
    "itemknn": 0.039,
    "als": 0.049,
    "ease": 0.055,
    "multivae": 0.050,
    "neumf": 0.045,
}
#: HR@10 of NeuMF against the 99 published negatives.
NEGATIVES_FLOOR = 0.67


def main() -> int:
    split = standard_split("ml-1m", validation=False)
    targets, items = (split.target_user, split.target_item), split.train.items
    seen = split.history().matrix()
    missed, total = 0, 0.0
    print("recommender  NDCG@10  floor   Recall@10  HR@10 against 99  seconds")
    for name, floor in FLOORS.items():
        start = time.perf_counter()
        model = create(name).fit_split(split)
        ranks = exact_ranks(model, targets, items=items, exclude=seen).ranks
        seconds = time.perf_counter() - start
        ndcg = float((NDCG @ 10).weights(ranks, items).mean())
        published = ranks_against(model.score, *targets, split.negatives)
        against = float((published.ranks <= 10).mean())
        reached = ndcg >= floor and (name != "neumf" or against >= NEGATIVES_FLOOR)
        missed, total = missed + (not reached), total + seconds
        print(
            f"{name:12} {ndcg:.4f}   {floor:.3f}   {np.mean(ranks <= 10):.4f}     "
            f"{against:.4f}            {seconds:7.1f}  {'ok' if reached else 'MISSED'}",
            flush=True,
        )
    print(f"all from data to ranks: {total / 60:.1f} minutes")
    return missed


if __name__ == "__main__":
    sys.exit(main())
