"""What the blocks of docs/libraries.md name: fitted models and data of each real library.

A function for each section returns the names its code uses, and ``check``, which is called with all
names after the code has run, and compares them with what the library itself finds.
"""

from __future__ import annotations

import importlib.util
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.synthetic import synthetic
from unsample.lab.datasets import leave_random_out

Names = dict[str, Any]
USERS, ITEMS, SAMPLED = 400, 1000, 99


def need_library(module: str) -> None:
    """Skip without the library, and say how these tests are run with every one of them."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}; `make libraries` runs this with each real library")


@cache
def interactions() -> Any:
    """Return who has what, one item of each user held out; every held-out item is in training."""
    split = leave_random_out(synthetic(USERS, ITEMS, rng=0), rng=0)
    known = np.isin(split.target_item, split.train.item)
    return split.train, split.target_user[known], split.target_item[known]


def near(found: float, wanted: float, room: float = 1e-6) -> None:
    assert found == pytest.approx(wanted, rel=0, abs=room)


def holds(result: Any, metric: str, truth: float) -> None:
    """Assert that a wide interval of the estimate holds what is true of the whole catalogue."""
    low, high = result[metric].interval(0.99)
    assert low <= truth <= high


# -- RecBole ---------------------------------------------------------------------------------------


@cache
def recbole_data() -> tempfile.TemporaryDirectory[str]:
    """Write the interactions as RecBole reads them, into a folder that is gone with the tests."""
    folder = tempfile.TemporaryDirectory()
    data = synthetic(USERS, ITEMS, rng=0)
    rows = [f"u{u}\ti{i}\t{t}" for t, (u, i) in enumerate(zip(data.user, data.item, strict=True))]
    Path(folder.name, "toy").mkdir()
    header = "user_id:token\titem_id:token\ttimestamp:float"
    Path(folder.name, "toy", "toy.inter").write_text("\n".join([header, *rows]))
    return folder


def recbole_objects(
    name: str, mode: str, split: Names, *, seed: int = 1
) -> tuple[Any, Any, Any, Any]:
    """Return a trainer, its model and the loaders of training and test data."""
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import get_model, get_trainer, init_seed

    folder = recbole_data().name
    settings = {
        "data_path": folder,
        "checkpoint_dir": folder,
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "eval_args": {"split": split, "order": "TO", "group_by": "user", "mode": mode},
        "metrics": ["Hit", "NDCG", "MRR", "MAP", "Recall", "Precision"],
        "topk": [1, 10, 50],
        "metric_decimal_place": 12,
        "epochs": 1,
        "use_gpu": False,
        "state": "ERROR",
        "show_progress": False,
        "MAX_ITEM_LIST_LENGTH": 10,
    } | ({"train_neg_sample_args": None} if name == "SASRec" else {})
    config = Config(model=name, dataset="toy", config_dict=settings)
    init_seed(seed, reproducibility=True)
    train, _, test = data_preparation(config, create_dataset(config))
    model = get_model(name)(config, train.dataset)
    return get_trainer(config["MODEL_TYPE"], name)(config, model), model, train, test


ONE_TARGET, SEVERAL = {"LS": "valid_and_test"}, {"RS": [0.7, 0.1, 0.2]}


def recbole() -> Names:
    need_library("recbole")
    trainer, model, train, sampled_loader = recbole_objects("EASE", "uni100", ONE_TARGET)
    trainer.fit(train, saved=False, verbose=False)
    plain, _, _, full_loader = recbole_objects("EASE", "full", ONE_TARGET)
    plain.model = model
    theirs = plain.evaluate(full_loader, load_best_model=False)

    def check(names: Names) -> None:
        near(names["exact"]["Recall@50"].value, theirs["recall@50"])
        for metric, name in (("Recall@50", "recall@50"), ("NDCG@50", "ndcg@50")):
            holds(names["result"], metric, theirs[name])
            assert (
                names["results"][f"{name}_low"] <= theirs[name] <= names["results"][f"{name}_high"]
            )

    return {
        "trainer": trainer, "model": model, "sampled_loader": sampled_loader,
        "full_loader": full_loader, "check": check,
    }  # fmt: skip


# -- LensKit ---------------------------------------------------------------------------------------


def lenskit() -> Names:
    need_library("lenskit")
    import lenskit.batch
    import pandas as pd
    from lenskit.als import ImplicitMFScorer
    from lenskit.data import ItemList, ItemListCollection, from_interactions_df
    from lenskit.metrics import Recall, RunAnalysis
    from lenskit.pipeline import topn_pipeline

    data, users, items = interactions()
    train = from_interactions_df(pd.DataFrame({"user_id": data.user, "item_id": data.item}))
    pipeline = topn_pipeline(ImplicitMFScorer(embedding_size=16, epochs=5))
    pipeline.train(train)
    rng, seen, known = np.random.default_rng(0), data.matrix().toarray() > 0, np.unique(data.item)
    own, drawn = {}, {}
    for user, item in zip(users.tolist(), items.tolist(), strict=True):
        free = np.setdiff1d(known[~seen[user, known]], [item])
        own[user] = ItemList([item])
        drawn[user] = ItemList(np.append(rng.choice(free, SAMPLED, replace=False), item))
    test, lists = (ItemListCollection.from_dict(each, key="user_id") for each in (own, drawn))
    scored = lenskit.batch.score(pipeline, lists, n_jobs=1)
    top = lenskit.batch.recommend(pipeline, users.tolist(), n=50, n_jobs=1)
    analysis = RunAnalysis(Recall(50)).measure(top, test)
    theirs = float(analysis.list_summary().loc["Recall@50", "mean"])

    def check(names: Names) -> None:
        near(names["exact"]["Recall@50"].value, theirs)
        holds(names["result"], "Recall@50", theirs)

    return {"train": train, "test": test, "scored": scored, "pipeline": pipeline, "check": check}


# -- PyKEEN ----------------------------------------------------------------------------------------


def pykeen() -> Names:
    need_library("pykeen")
    import torch
    from pykeen.evaluation import RankBasedEvaluator, SampledRankBasedEvaluator
    from pykeen.models import DistMult
    from pykeen.training import LCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    from unsample.adapters import pykeen as adapter

    likes = synthetic(200, 300, rng=0)  # by two relations
    triples = np.stack([likes.user, likes.item % 2, 200 + likes.item], axis=1)
    factory = CoreTriplesFactory(torch.as_tensor(triples), 500, 2)
    train, test = factory.split([0.9, 0.1], random_state=0)
    model = DistMult(triples_factory=train, embedding_dim=16, random_seed=0)
    loop = LCWATrainingLoop(model=model, triples_factory=train, optimizer_kwargs={"lr": 0.05})
    loop.train(train, num_epochs=5, batch_size=256, use_tqdm=False)
    random.seed(0)  # with which PyKEEN draws its negatives
    known = train.mapped_triples
    sampled = SampledRankBasedEvaluator(
        evaluation_factory=test, additional_filter_triples=known, num_negatives=50,
        clear_on_finalize=False,
    )  # fmt: skip
    full = RankBasedEvaluator(clear_on_finalize=False)
    _, found = (
        evaluator.evaluate(
            model, test.mapped_triples, additional_filter_triples=[known], batch_size=64,
            use_tqdm=False,
        )
        for evaluator in (sampled, full)
    )  # fmt: skip
    theirs = {
        "Hits@10": float(found.get_metric("tail.realistic.hits@10")),
        "MRR": float(found.get_metric("tail.realistic.inverse_harmonic_mean_rank")),
    }

    def check(names: Names) -> None:
        for metric, value in theirs.items():
            holds(names["result"], metric, value)
        both = adapter.targets(sampled, known=train, ties="optimistic")
        for ours, batches in (
            (both.ranks, [sampled.ranks[side, "optimistic"] for side in ("head", "tail")]),
            (both.items, [full.num_candidates[side] for side in ("head", "tail")]),
        ):
            assert np.array_equal(ours, np.concatenate(list(map(np.concatenate, batches))))

    return {
        "evaluator": sampled, "train": train, "test": test, "model": model, "theirs": theirs,
        "check": check,
    }  # fmt: skip


# -- the other adapters ----------------------------------------------------------------------------


def trec() -> Names:
    need_library("ir_measures")
    rng, run, qrels = np.random.default_rng(0), {}, {}
    for query in (f"q{number}" for number in range(300)):
        drawn = [f"d{each}" for each in rng.choice(5000, SAMPLED + 1, replace=False)]
        scores = rng.normal(size=SAMPLED + 1)
        scores[0] += rng.exponential(2.0)  # the relevant document tends to be found
        run[query] = dict(zip(drawn, scores.tolist(), strict=True))
        qrels[query] = {drawn[0]: 1}
    rows = [f"{q} Q0 {d} 0 {s!r} tag" for q, docs in run.items() for d, s in docs.items()]
    Path("model.run").write_text("\n".join(rows))
    judged = [f"{q} 0 {d} {r}" for q, docs in qrels.items() for d, r in docs.items()]
    Path("test.qrels").write_text("\n".join(judged))

    def check(names: Names) -> None:
        from ir_measures import RR, calc_aggregate

        near((1 / names["found"].ranks).mean(), calc_aggregate([RR], qrels, run)[RR])
        assert 0.2 < names["result"]["Recall@100"].value < 0.9

    return {"check": check}


def torchmetrics() -> Names:
    need_library("torchmetrics")
    import torch

    generator = torch.Generator().manual_seed(0)
    batches = torch.randn(5, 128, SAMPLED + 1, generator=generator)
    batches[:, :, 0] += 2 * torch.rand(5, 128, generator=generator)

    def check(names: Names) -> None:
        values = {name: float(value) for name, value in names["metric"].compute().items()}
        assert values == pytest.approx({n: e.value for n, e in names["result"].items()}, rel=1e-6)

    return {"batches": list(batches), "check": check}


# -- recipes ---------------------------------------------------------------------------------------


def ogb() -> Names:
    need_library("ogb")
    import torch
    from ogb.linkproppred import Evaluator

    rng = np.random.default_rng(0)
    own = torch.as_tensor(rng.normal(2.0, 1.5, 800))
    others = torch.as_tensor(rng.normal(size=(800, 1000)))
    theirs = Evaluator("ogbl-citation2").eval({"y_pred_pos": own, "y_pred_neg": others})

    def check(names: Names) -> None:
        assert np.allclose(1 / names["ranks"], theirs["mrr_list"])
        assert 0 < names["result"]["Hits@50"].value < 1

    return {"y_pred_pos": own, "y_pred_neg": others, "check": check}


def rectools() -> Names:
    need_library("rectools")
    import pandas as pd
    from implicit.als import AlternatingLeastSquares
    from rectools.dataset import Dataset
    from rectools.metrics import Recall
    from rectools.models import ImplicitALSWrapperModel

    data, users, items = interactions()
    frame = pd.DataFrame({"user_id": data.user + 1000, "item_id": data.item + 5000})
    dataset = Dataset.construct(
        frame.sample(frac=1, random_state=0).assign(weight=1, datetime="2026-01-01")
    )
    test = pd.DataFrame({"user_id": users + 1000, "item_id": items + 5000})
    als = AlternatingLeastSquares(factors=16, iterations=5, num_threads=1, random_state=0)
    model = ImplicitALSWrapperModel(als).fit(dataset)
    top = model.recommend(
        users=test["user_id"].to_numpy(), dataset=dataset, k=10, filter_viewed=True
    )
    theirs = Recall(k=10).calc(top, test)
    return {
        "model": model, "dataset": dataset, "test": test,
        "check": lambda names: near(names["exact"]["Recall@10"].value, theirs),
    }  # fmt: skip


def cornac() -> Names:
    need_library("cornac")
    import cornac
    from cornac.eval_methods.base_method import ranking_eval

    data = synthetic(USERS, ITEMS, rng=0)
    ratings = [(f"u{u}", f"i{i}", 1.0) for u, i in zip(data.user, data.item, strict=True)]
    method = cornac.eval_methods.RatioSplit(ratings, test_size=0.1, rating_threshold=1.0, seed=1)
    model = cornac.models.BPR(k=16, max_iter=20, seed=1)
    model.fit(method.train_set)
    metrics = [cornac.metrics.Recall(k=10), cornac.metrics.NDCG(k=10)]
    theirs, _ = ranking_eval(
        model, metrics, method.train_set, method.test_set, rating_threshold=1.0,
        exclude_unknowns=True,
    )  # fmt: skip

    def check(names: Names) -> None:
        for metric, value in zip(("Recall@10", "NDCG@10"), theirs, strict=True):
            near(names["exact"][metric].value, value)

    return {"model": model, "method": method, "check": check}


def implicit() -> Names:
    need_library("implicit")
    from implicit.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k
    from implicit.nearest_neighbours import BM25Recommender

    data, *pairs = interactions()
    train = sparse.csr_matrix(data.matrix(), dtype="float32")
    test = sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=train.shape)
    als = AlternatingLeastSquares(factors=16, iterations=5, num_threads=1, random_state=0)
    bm25 = BM25Recommender(num_threads=1)
    theirs = []
    for model in (als, bm25):
        model.fit(train, show_progress=False)
        theirs.append(ranking_metrics_at_k(model, train, test, K=10, show_progress=False))

    def check(names: Names) -> None:
        near(names["exact"]["NDCG@10"].value, theirs[0]["ndcg"])
        near(names["exact"]["AP(norm=min)@10"].value, theirs[0]["map"])
        near(names["nearest"]["NDCG@10"].value, theirs[1]["ndcg"], 0.01)  # ties

    return {"als": als, "bm25": bm25, "train": train, "test": test, "check": check}


def dask() -> Names:
    need_library("dask")
    import dask.dataframe as dd
    import pandas as pd

    import unsample

    ranks = np.random.default_rng(0).integers(1, 101, 1000)
    frame = dd.from_pandas(pd.DataFrame({"rank": ranks}), npartitions=3)
    wanted = unsample.RankCounts.from_ranks(ranks, items=3706, sampled=99)

    def check(names: Names) -> None:
        assert names["result"].counts == wanted

    return {"frame": frame, "check": check}


def knowledge_graph() -> Names:
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, (60, 3, 60), size=(800, 3)), axis=0)
    rng.shuffle(triples)
    train, test = triples[100:], triples[:100]
    table = rng.normal(size=(60, 3, 60))

    def check(names: Names) -> None:
        true, ranks = set(map(tuple, triples.tolist())), []
        for head, relation, tail in test.tolist():
            row = table[head, relation]
            others = [e for e in range(60) if (head, relation, e) not in true]
            ranks.append(1 + sum(row[e] > row[tail] for e in others))
        near(names["exact"]["Hits@10"].value, (np.array(ranks) <= 10).mean())

    score = lambda h, r, t: table[h, r, t]  # noqa: E731  # as a reader's function
    return {"train": train, "test": test, "score": score, "entities": 60, "check": check}


#: Sections of docs/libraries.md -> what makes the objects that their code names.
SECTIONS: dict[str, Callable[[], Names]] = {
    "RecBole": recbole,
    "LensKit": lenskit,
    "PyKEEN": pykeen,
    "TREC files": trec,
    "TorchMetrics": torchmetrics,
    "OGB and TGB": ogb,
    "RecTools": rectools,
    "Cornac": cornac,
    "implicit": implicit,
    "Dask": dask,
    "Knowledge graphs without PyKEEN": knowledge_graph,
}
