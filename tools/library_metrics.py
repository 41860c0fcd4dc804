"""Ask the libraries themselves for metrics of a few lists, and keep what they say for the tests.

Every user of the problem has one to five relevant items, and a list of all items in which they
have their places; no two items tie. Run this with a Python that has the library, as
`tools/try_adapters.py` makes one for each:

    python tools/library_metrics.py ranx             write ranx's numbers of the kept problem
    python tools/library_metrics.py ranx --identify  our names of its metrics, by random problems

What is written, with the version of the library: tests/data/library_metrics.json.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(HERE))

from tests import user_metrics  # noqa: E402  # found by the line above

KEPT = HERE / "tests" / "data" / "library_metrics.json"
CUTOFFS = (1, 3, 5, 12, 20)


@dataclass(frozen=True)
class Problem:
    """Lists of one length, a list for each user, by the ranks and grades of what is relevant."""

    items: int
    ranks: list[list[int]]
    relevance: list[list[int]]

    @classmethod
    def random(cls, seed: int, users: int = 8, items: int = 12) -> Problem:
        """Make one to five relevant items for each user, at least one user with each number."""
        rng = random.Random(seed)  # noqa: S311  # no secret
        sizes = [1 + user % 5 for user in range(users)]
        ranks = [sorted(rng.sample(range(1, items + 1), size)) for size in sizes]
        return cls(items, ranks, [[rng.randint(1, 3) for _ in row] for row in ranks])

    def lists(self, *, graded: bool = False) -> list[user_metrics.List]:
        """Return the lists as the references take them."""
        pairs = zip(self.ranks, self.relevance, strict=True)
        return [user_metrics.listed(r, self.items, g if graded else None) for r, g in pairs]

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return the grades by the names of users and items: the item at place 3 is d3."""
        return {
            str(user): {f"d{rank}": grade for rank, grade in zip(*row, strict=True)}
            for user, row in enumerate(zip(self.ranks, self.relevance, strict=True))
        }

    def binary(self) -> dict[str, dict[str, int]]:
        """Return 1 for each relevant item."""
        return {query: dict.fromkeys(row, 1) for query, row in self.qrels().items()}

    def run(self) -> dict[str, dict[str, float]]:
        """Return a score for each item, in the order of the list."""
        scores = {f"d{place}": float(self.items - place + 1) for place in range(1, self.items + 1)}
        return {query: dict(scores) for query in self.qrels()}


def ask_trec(problem: Problem) -> dict[str, float]:
    """ir_measures, and pytrec_eval by itself."""
    import pytrec_eval
    from ir_measures import AP, RR, P, R, Rprec, Success, calc_aggregate, nDCG

    measures = [AP, RR, Rprec, nDCG]
    measures += [m @ k for k in CUTOFFS for m in (AP, RR, P, R, Success, nDCG)]
    found = calc_aggregate(measures, problem.binary(), problem.run())
    said = {str(measure): float(score) for measure, score in found.items()}
    graded = [nDCG, *(nDCG @ k for k in CUTOFFS)]
    graded += [nDCG(gains={g: 2**g - 1 for g in range(4)}) @ k for k in CUTOFFS]
    if shutil.which("perl"):
        graded += [nDCG(dcg="exp-log2") @ k for k in CUTOFFS]
    for measure in graded:
        # One by one: asked together, ir_measures 0.4.3 takes the gains of one for another.
        (score,) = calc_aggregate([measure], problem.qrels(), problem.run()).values()
        said[f"graded {measure}"] = float(score)
    kinds = {"map", "recip_rank", "Rprec", "ndcg"}
    cut = ("map_cut", "P", "recall", "ndcg_cut", "success")
    kinds |= {f"{name}.{','.join(map(str, CUTOFFS))}" for name in cut}
    by_query = pytrec_eval.RelevanceEvaluator(problem.binary(), kinds).evaluate(problem.run())
    for name in next(iter(by_query.values())):
        mean = math.fsum(row[name] for row in by_query.values()) / len(by_query)
        said["pytrec_eval " + re.sub(r"_(\d+)$", r"@\1", name)] = mean
    return said


def ask_ranx(problem: Problem) -> dict[str, float]:
    from ranx import Qrels, Run, evaluate

    run = Run(problem.run())
    families = (
        "hits",
        "hit_rate",
        "precision",
        "recall",
        "f1",
        "mrr",
        "map",
        "ndcg",
        "ndcg_burges",
    )
    wanted = [*families, "r-precision", *(f"{name}@{k}" for name in families for k in CUTOFFS)]
    said = dict(evaluate(Qrels(problem.binary()), run, wanted))
    graded = [name for name in wanted if name.startswith("ndcg")]
    again = evaluate(Qrels(problem.qrels()), run, graded)
    return said | {f"graded {name}": value for name, value in again.items()}


def ask_recbole(problem: Problem) -> dict[str, float]:
    import torch
    from recbole.config import Config
    from recbole.evaluator import Collector, Evaluator

    # An item 0 for padding, which is no candidate; RecBole cannot cut beyond the list.
    cutoffs = [k for k in CUTOFFS if k <= problem.items]
    settings = {
        "metrics": ["Hit", "MRR", "MAP", "Recall", "NDCG", "Precision", "GAUC"],
        "topk": cutoffs,
        "metric_decimal_place": 15,
        "use_gpu": False,
        "state": "ERROR",
        "data_path": str(HERE / "tests" / "data"),
    }
    arguments, sys.argv = sys.argv, sys.argv[:1]
    config = Config(model="BPR", dataset="toy", config_dict=settings)
    sys.argv = arguments
    users = len(problem.ranks)
    scores = -torch.arange(problem.items + 1, dtype=torch.float32).repeat(users, 1)
    scores[:, 0] = -torch.inf
    owner = torch.as_tensor([u for u, row in enumerate(problem.ranks) for _ in row])
    item = torch.as_tensor([rank for row in problem.ranks for rank in row])
    collector = Collector(config)
    collector.eval_batch_collect(scores, None, owner, item)
    return {k: float(v) for k, v in Evaluator(config).evaluate(collector.get_data_struct()).items()}


def ask_lenskit(problem: Problem) -> dict[str, float]:
    import numpy as np
    from lenskit import metrics
    from lenskit.data import ItemList
    from lenskit.metrics import ranking

    shifted = ranking.LogRankWeight(offset=1)
    kinds: dict[str, Callable[[int | None], Any]] = {
        "Recall": metrics.Recall,
        "Precision": metrics.Precision,
        "Hit": metrics.Hit,
        "RecipRank": metrics.RecipRank,
        "AveragePrecision": ranking.AveragePrecision,
        "NDCG": metrics.NDCG,
        "NDCG(weight=LogRankWeight(offset=1))": lambda n: metrics.NDCG(n, weight=shifted),
        "graded NDCG(gain='rating', weight=LogRankWeight(offset=1))": lambda n: metrics.NDCG(
            n, gain="rating", weight=shifted
        ),
    }
    ordered = ItemList(np.arange(1, problem.items + 1), ordered=True)
    said = {}
    for name, make in kinds.items():
        for k in (*CUTOFFS, None):
            values = [
                float(make(k).measure_list(ordered, ItemList(np.array(r), rating=np.array(g))))
                for r, g in zip(problem.ranks, problem.relevance, strict=True)
            ]
            said[name if k is None else f"{name}@{k}"] = math.fsum(values) / len(values)
    return said


def ask_rectools(problem: Problem) -> dict[str, float]:
    import pandas as pd
    from rectools import metrics

    users = range(len(problem.ranks))
    pairs = [(user, rank) for user in users for rank in problem.ranks[user]]
    interactions = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    places = [(user, place, place) for user in users for place in range(1, problem.items + 1)]
    reco = pd.DataFrame(places, columns=["user_id", "item_id", "rank"])
    kinds: dict[str, Callable[[int], Any]] = {
        "Precision": metrics.Precision,
        "Precision(r_precision=True)": lambda k: metrics.Precision(k, r_precision=True),
        "Recall": metrics.Recall,
        "HitRate": metrics.HitRate,
        "MAP": metrics.MAP,
        "MAP(divide_by_k=True)": lambda k: metrics.MAP(k, divide_by_k=True),
        "NDCG": metrics.NDCG,
        "NDCG(divide_by_achievable=True)": lambda k: metrics.NDCG(k, divide_by_achievable=True),
        "MRR": metrics.MRR,
        "PartialAUC": metrics.PartialAUC,
    }
    made = {f"{name}@{k}": make(k) for name, make in kinds.items() for k in CUTOFFS}
    return {k: float(v) for k, v in metrics.calc_metrics(made, reco, interactions).items()}


def ask_cornac(problem: Problem) -> dict[str, float]:
    import numpy as np
    from cornac import metrics

    items = np.arange(problem.items)
    kinds = (
        metrics.NDCG, metrics.NCRR, metrics.HitRatio, metrics.Precision, metrics.Recall,
        metrics.FMeasure,
    )  # fmt: skip
    made = [kind(k) for kind in kinds for k in (*CUTOFFS, -1)]
    made += [metrics.MRR(), metrics.AUC(), metrics.MAP()]
    said = {}
    for metric in made:
        values = [
            metric.compute(
                gt_pos=np.array(row) - 1,
                gt_neg=np.setdiff1d(items, np.array(row) - 1),
                pd_rank=items,
                pd_scores=-items.astype(float),
                item_indices=items,
            )
            for row in problem.ranks
        ]
        said[metric.name.replace("@-1", "")] = float(math.fsum(values) / len(values))
    return said


def ask_implicit(problem: Problem) -> dict[str, float]:
    import numpy as np
    from implicit.evaluation import ranking_metrics_at_k
    from scipy import sparse

    class Listed:
        """A model that gives the lists of the problem, for nobody has anything in training."""

        def recommend(self, users: Any, _known: Any, N: int) -> tuple[Any, Any]:  # noqa: N803
            top = np.arange(min(N, problem.items), dtype=np.int32)
            return np.tile(top, (len(users), 1)), np.tile(-top.astype(np.float32), (len(users), 1))

    users = np.repeat(np.arange(len(problem.ranks)), [len(row) for row in problem.ranks])
    wanted = np.concatenate(problem.ranks) - 1
    shape = len(problem.ranks), problem.items
    test = sparse.csr_matrix((np.ones(len(users)), (users, wanted)), shape=shape)
    said = {}
    for k in (k for k in CUTOFFS if k <= problem.items):
        none = sparse.csr_matrix(shape)
        found = ranking_metrics_at_k(Listed(), none, test, K=k, show_progress=False)
        said |= {f"{name}@{k}": float(value) for name, value in found.items()}
    return said


def ask_torchmetrics(problem: Problem) -> dict[str, float]:
    import torch
    from torchmetrics import retrieval

    users, items = len(problem.ranks), problem.items
    index = torch.arange(users).repeat_interleave(items)
    # Relevant items whose score is not above 0 are no hits for TorchMetrics: all scores are.
    preds = torch.arange(items, 0, -1, dtype=torch.float32).repeat(users)
    target = torch.tensor(problem.lists()).flatten().long()
    graded = torch.tensor(problem.lists(graded=True)).flatten().long()
    kinds = (
        "MAP", "MRR", "Precision", "Recall", "HitRate", "NormalizedDCG", "AUROC"
    )  # fmt: skip
    said = {}
    for kind in kinds:
        for k in (*CUTOFFS, None):
            name = f"Retrieval{kind}" + (f"@{k}" if k else "")
            metric = getattr(retrieval, f"Retrieval{kind}")(top_k=k)
            said[name] = float(metric(preds, target, indexes=index))
            if kind == "NormalizedDCG":
                metric = retrieval.RetrievalNormalizedDCG(top_k=k)
                said[f"graded {name}"] = float(metric(preds, graded, indexes=index))
    precision = retrieval.RetrievalRPrecision()
    return said | {"RetrievalRPrecision": float(precision(preds, target, indexes=index))}


#: The distributions that a library's numbers come from, and how it is asked.
LIBRARIES: dict[str, tuple[tuple[str, ...], Callable[[Problem], dict[str, float]]]] = {
    "trec": (("ir-measures", "pytrec-eval-terrier"), ask_trec),
    "ranx": (("ranx",), ask_ranx),
    "recbole": (("recbole",), ask_recbole),
    "lenskit": (("lenskit",), ask_lenskit),
    "rectools": (("rectools",), ask_rectools),
    "cornac": (("cornac",), ask_cornac),
    "implicit": (("implicit",), ask_implicit),
    "torchmetrics": (("torchmetrics",), ask_torchmetrics),
}


def identify(library: str, repeats: int = 25) -> None:
    """Print our names of each metric of a library: those that are equal on all random problems."""
    _, ask = LIBRARIES[library]
    families = [*user_metrics.FORMULAS, *user_metrics.FOREIGN, *user_metrics.POOLED]
    fits: dict[str, dict[str, set[int]]] = {}
    for seed in range(repeats):
        problem = Problem.random(seed, users=5)
        for theirs, number in ask(problem).items():
            name, _, k = theirs.partition("@")
            lists = problem.lists(graded=name.startswith("graded "))
            # The cutoffs at which each of our names gave another number at least once.
            wrong = fits.setdefault(name + "@K" * bool(k), {family: set() for family in families})
            for family in families:
                ours = user_metrics.mean(family + f"@{k}" * bool(k), lists)
                if abs(ours - number) > user_metrics.tolerance(library, theirs):
                    wrong[family].add(int(k or 0))
    for theirs, wrong in fits.items():
        right = [family for family, missed in wrong.items() if not missed]
        known = user_metrics.SAME[library][theirs]
        agreed = known is None if not right else (known or "").removesuffix("@K") in right
        said = ", ".join(right) or "-"
        print(f"{library:12} {theirs:60} {said:50} {'' if agreed else f'BUT {known}'}")


def keep(library: str) -> None:
    """Write what a library says of the kept problem."""
    distributions, ask = LIBRARIES[library]
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    problem = Problem.random(2026)
    kept["made_by"] = "tools/library_metrics.py"
    kept["problem"] = vars(problem)
    kept.setdefault("libraries", {})[library] = {
        "versions": {name: metadata.version(name) for name in distributions},
        "values": ask(problem),
    }
    kept["libraries"] = dict(sorted(kept["libraries"].items()))
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    # A list of numbers on one line.
    text = re.sub(r"\[[\d,\s]+\]", lambda row: " ".join(row[0].split()), json.dumps(kept, indent=1))
    KEPT.write_text(text + "\n")


def main() -> None:
    """Ask one library."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--identify", action="store_true")
    options = parser.parse_args()
    (identify if options.identify else keep)(options.library)


if __name__ == "__main__":
    main()
