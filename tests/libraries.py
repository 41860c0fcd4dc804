"""Real libraries as the adapters' tests meet them: fitted models, and what they say of themselves.

Every library has a class here with the same three methods. ``task(kind)`` makes a `Task` and the
metrics that the library itself computes for it, of users with one to five held-out items;
``targets(kind)`` a function of ``ties=`` that makes `Targets`, and what they must be;
``refusals()`` calls that must fail, by their messages.
"""

from __future__ import annotations

import importlib.util
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests import user_metrics
from unsample.adapters import Task, cornac, implicit, lenskit, pykeen, recbole, rectools
from unsample.evidence import Targets

#: What is called with which arguments, by the message with which it must fail.
Refusals = dict[str, tuple[Any, ...]]
SAMPLED = 25
#: Below, at and beyond how many items are held out for a user.
CUTOFFS = (1, 3, 10)


def need_library(name: str) -> None:
    """Skip without the library, and say how these tests are run with every one of them."""
    module = {
        "trec": "ir_measures",
        "spark": "pyspark",
        "graphs": "numpy",
    }.get(name, name)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}; `make libraries` runs this with each real library")


@dataclass(frozen=True, eq=False)
class Asked:
    """A task, and what the library itself finds, under our names."""

    task: Task
    wanted: dict[str, float]
    rounded: float = 1e-9
    ties: bool = False
    factors: bool | None = None


@dataclass(frozen=True, eq=False)
class Ranked:
    """A function of ``ties=`` that ranks targets, and what they must be, in order."""

    targets: Callable[..., Targets]
    better: np.ndarray
    tied: np.ndarray
    items: np.ndarray
    sampled: int | np.ndarray


def ours(library: str, said: Mapping[str, float]) -> dict[str, float]:
    """Return what a library says under our names; what has none is left out."""
    named = {user_metrics.same(library, theirs): float(said[theirs]) for theirs in said}
    return {name: number for name, number in named.items() if name and user_metrics.is_ours(name)}


@dataclass(frozen=True, eq=False)
class Held:
    """Who has what in training, and the items of each user that are held out."""

    seen: np.ndarray
    held: tuple[np.ndarray, ...]

    @property
    def users(self) -> np.ndarray:
        return np.arange(len(self.held))

    @property
    def target(self) -> np.ndarray:
        """Return one held-out item of each user."""
        return np.array([items[0] for items in self.held])

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the user and the item of everything that is held out."""
        return np.repeat(self.users, [len(items) for items in self.held]), np.concatenate(self.held)

    @property
    def items(self) -> np.ndarray:
        """Return how many items compete for each user's held-out places, themselves included."""
        return self.seen.shape[1] - self.seen.sum(axis=1)

    def frame(self) -> Any:
        """Return the pairs of training with names that are no numbers from 0."""
        return self.named(*np.nonzero(self.seen))

    @staticmethod
    def named(users: np.ndarray, items: np.ndarray) -> Any:
        import pandas as pd

        return pd.DataFrame({"user_id": users + 1000, "item_id": items + 5000})


@cache
def held_out(users: int = 120, items: int = 200) -> Held:
    """Make interactions of which every item is in training, one to five held out for each user."""
    rng = np.random.default_rng(0)
    likes = rng.random((users, items)) < 0.08
    likes[:, :30] |= rng.random((users, 30)) < 0.3
    held = tuple(
        rng.choice(np.flatnonzero(row), 1 + user % 5, replace=False)
        for user, row in enumerate(likes)
    )
    rows = np.repeat(np.arange(users), [len(row) for row in held]), np.concatenate(held)
    likes[rows] = False
    # Libraries know only items that somebody has; two users take the others, targets excepted.
    likes[:2] |= ~likes.any(axis=0)
    likes[rows] = False
    return Held(likes, held)


class Implicit:
    """Factors and neighbours."""

    tasks = ("als", "bpr", "bm25")
    ranked = ()

    def __init__(self) -> None:
        self.data = held_out()
        self.train = sparse.csr_matrix(self.data.seen.astype(np.float32))
        pairs = self.data.pairs
        self.test = sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=self.train.shape)

    def fit(self, kind: str) -> Any:
        from implicit.als import AlternatingLeastSquares
        from implicit.bpr import BayesianPersonalizedRanking
        from implicit.nearest_neighbours import BM25Recommender

        factors = {"factors": 8, "random_state": 0, "num_threads": 1}
        kinds = {"als": AlternatingLeastSquares, "bpr": BayesianPersonalizedRanking}
        model = kinds[kind](**factors) if kind in kinds else BM25Recommender(num_threads=1)
        model.fit(self.train, show_progress=False)
        return model

    def task(self, kind: str) -> Asked:
        from implicit.evaluation import ranking_metrics_at_k

        model = self.fit(kind)
        said = {
            f"{name}@{k}": value
            for k in CUTOFFS
            for name, value in ranking_metrics_at_k(
                model, self.train, self.test, K=k, show_progress=False
            ).items()
        }
        given = sparse.csr_array(self.train), sparse.coo_array(self.test)
        task = implicit.task(model, *(given if kind == "bpr" else (self.train, self.test)))
        return Asked(task, ours("implicit", said), factors=kind != "bm25")

    def refusals(self) -> Refusals:
        from implicit.als import AlternatingLeastSquares

        ask, train, test, model = implicit.task, self.train, self.test, self.fit("als")
        return {
            "must be a fitted model": (ask, AlternatingLeastSquares(), train, test),
            r"test must be of shape \(120, 200\).*got \(200, 120\)": (ask, model, train, test.T),
            "a row for each of the model's 120 users": (ask, model, train.T, test.T),
            "model's 200 items, got 150": (ask, model, train[:, :150], test[:, :150]),
            "at least one target, got none": (ask, model, train, sparse.csr_matrix(train.shape)),
        }


class Cornac:
    """Ratings with a threshold, of which some users and items are unknown to training."""

    #: With a plus, unknown users and items are not left out; with a star, the test set holds some
    #: of what is in training.
    tasks = ("BPR", "EASE", "EASE+", "EASE*", "MostPop", "MostPop+", "MF+")
    ranked = ()

    def split(self, *, overlap: bool = False, **options: Any) -> Any:
        from cornac.eval_methods import BaseMethod, RatioSplit

        users, items = np.nonzero(held_out().seen)
        stars = np.random.default_rng(1).integers(1, 6, len(users)).tolist()
        rows = [(f"u{u}", f"i{i}", float(s)) for u, i, s in zip(users, items, stars, strict=True)]
        if overlap:
            random.Random(1).shuffle(rows)
            train, test = rows[: len(rows) * 4 // 5], rows[len(rows) * 3 // 4 :]
            return BaseMethod.from_splits(train, test, rating_threshold=3.0, **options)
        return RatioSplit(
            rows, test_size=0.15, val_size=0.05, rating_threshold=3.0, seed=1, **options
        )

    def task(self, kind: str) -> Asked:
        import cornac as library
        from cornac.eval_methods.base_method import ranking_eval

        name, exclude_unknowns = kind.rstrip("+*"), not kind.endswith("+")
        method = self.split(overlap=kind.endswith("*"), exclude_unknowns=exclude_unknowns)
        options = {"BPR": {"k": 8, "max_iter": 20, "seed": 1}, "MF": {"k": 4, "seed": 1}}
        model = getattr(library.models, name)(**options.get(name, {}))
        model.fit(method.train_set)
        metrics = library.metrics
        cut = (metrics.Recall, metrics.NDCG, metrics.Precision, metrics.HitRatio)
        whole = [metrics.MRR(), metrics.AUC(), metrics.MAP(), metrics.NDCG()]
        said = {}
        # Apart: with others at some K, Cornac sorts no further than that K.
        for asked in ([metric(k=k) for metric in cut for k in CUTOFFS], whole):
            found, _ = ranking_eval(
                model, asked, method.train_set, method.test_set, method.val_set,
                rating_threshold=3.0, exclude_unknowns=exclude_unknowns,
            )  # fmt: skip
            said |= dict(zip([m.name.removesuffix("@-1") for m in asked], found, strict=True))
        # Cornac breaks ties by place, and the popular model ties often.
        factors = {"BPR": True, "EASE": False}.get(kind)
        task = cornac.task(model, method)
        return Asked(task, ours("cornac", said), ties=name == "MostPop", factors=factors)

    def refusals(self) -> Refusals:
        import cornac as library

        method, model, session = self.split(), library.models.MostPop(), library.models.SPop()
        session.num_items = 5
        empty = library.eval_methods.BaseMethod()
        return {
            "model must be fitted, got MostPop": (cornac.task, model, method),
            "must have a training and a test set": (cornac.task, model, empty),
            r"must score items for a user alone.*history_items": (cornac.task, session, method),
        }


class LensKit:
    """Pipelines, and item lists with names that are no numbers from 0."""

    tasks = ranked = ("als", "knn")

    def __init__(self) -> None:
        from lenskit.data import from_interactions_df

        self.data = held_out()
        self.train = from_interactions_df(self.data.frame())
        self.test = self.collection(dict(enumerate(self.data.held)))
        self.one = self.collection({u: [item] for u, item in enumerate(self.data.target)})

    def collection(self, lists: dict[int, Any]) -> Any:
        from lenskit.data import ItemList, ItemListCollection

        named = {1000 + user: ItemList(5000 + np.asarray(row)) for user, row in lists.items()}
        return ItemListCollection.from_dict(named, key="user_id")

    def pipeline(self, kind: str) -> Any:
        from lenskit.als import ImplicitMFScorer
        from lenskit.knn import ItemKNNScorer
        from lenskit.pipeline import topn_pipeline

        als = ImplicitMFScorer(embedding_size=8, epochs=3)
        knn = ItemKNNScorer(max_nbrs=20, feedback="implicit")
        made = topn_pipeline(als if kind == "als" else knn)
        made.train(self.train)
        return made

    def task(self, kind: str) -> Asked:
        import lenskit as library
        from lenskit import metrics
        from lenskit.metrics import ranking

        pipeline, names = self.pipeline(kind), (1000 + self.data.users).tolist()
        analysis, shifted = metrics.RunAnalysis(), ranking.LogRankWeight(offset=1)
        for k in CUTOFFS:
            for metric in (metrics.Recall, metrics.Hit, metrics.RecipRank, metrics.Precision):
                analysis.add_metric(metric(k))
            analysis.add_metric(ranking.AveragePrecision(k))
            name = f"NDCG(weight=LogRankWeight(offset=1))@{k}"
            analysis.add_metric(metrics.NDCG(k, weight=shifted), label=name)
        lists = library.batch.recommend(pipeline, names, n=max(CUTOFFS), n_jobs=1)
        said = analysis.measure(lists, self.test).list_summary()["mean"].to_dict()
        wanted = ours("lenskit", said)
        # No list is shorter than K, so that precision is what it is elsewhere.
        wanted |= {f"Precision@{k}": float(said[f"Precision@{k}"]) for k in CUTOFFS}
        task = lenskit.task(pipeline, self.train, self.test)
        return Asked(task, wanted, ties=kind == "knn")

    def targets(self, kind: str) -> Ranked:
        import lenskit as library

        rng, lists = np.random.default_rng(0), {}
        for user, target in enumerate(self.data.target):
            free = np.setdiff1d(np.flatnonzero(~self.data.seen[user]), [target])
            lists[user] = np.append(rng.choice(free, SAMPLED, replace=False), target)
        scored = library.batch.score(self.pipeline(kind), self.collection(lists), n_jobs=1)
        better, tied = np.zeros((2, len(self.data.target)), dtype=int)
        for key, row in scored:
            user, values = key.user_id - 1000, np.nan_to_num(row.scores(), nan=-1e9)
            own = values[row.ids() - 5000 == self.data.target[user]]
            better[user], tied[user] = (values > own).sum(), (values == own).sum() - 1
        items = dict(zip((1000 + self.data.users).tolist(), self.data.items.tolist(), strict=True))
        rank = partial(lenskit.targets, scored, self.one, items=items, sampled=SAMPLED)
        return Ranked(rank, better, tied, self.data.items, SAMPLED)

    def refusals(self) -> Refusals:
        import lenskit as library

        train, test = self.train, self.test
        scored = library.batch.score(
            self.pipeline("als"), self.collection({0: [0, 1, 2]}), n_jobs=1
        )
        rank, ask = partial(lenskit.targets, items=50), partial(lenskit.task, self.pipeline("als"))
        many = partial(rank, sampled=99)
        return {
            "scored must hold lists with scores, got none for 1000": (rank, test, test),
            "scored must hold every target, got": (rank, scored, test),
            "must hold sampled = 99 items .* got 2": (many, scored, self.collection({0: [1]})),
            "test must hold at least one item list": (ask, train, self.collection({})),
            "each item of test must be known .*4993": (ask, train, self.collection({0: [-7]})),
            "each user of test must be known .*993": (ask, train, self.collection({-7: [0]})),
        }


class RecTools:
    """Tables and models, with the rows of the data set in no order."""

    tasks = ("als", "ease", "knn", "svd", "popular")
    ranked = ("score", "rank")

    def __init__(self) -> None:
        from rectools.dataset import Dataset

        self.data = held_out()
        frame = self.data.frame().sample(frac=1, random_state=0)
        self.dataset = Dataset.construct(frame.assign(weight=1, datetime="2026-01-01"))
        self.test = self.data.named(*self.data.pairs)
        self.one = self.data.named(self.data.users, self.data.target)

    def fit(self, kind: str) -> Any:
        from implicit.als import AlternatingLeastSquares
        from implicit.nearest_neighbours import CosineRecommender
        from rectools import models

        als = AlternatingLeastSquares(factors=8, num_threads=1, random_state=0)
        cosine = CosineRecommender(K=10, num_threads=1)
        kinds = {
            "als": lambda: models.ImplicitALSWrapperModel(als),
            "ease": lambda: models.EASEModel(regularization=50.0),
            "knn": lambda: models.ImplicitItemKNNWrapperModel(cosine),
            "svd": lambda: models.PureSVDModel(factors=8),
            "popular": models.PopularModel,
        }
        return kinds[kind]().fit(self.dataset)

    def recommend(self, model: Any, k: int) -> Any:
        users = self.one["user_id"].to_numpy()
        return model.recommend(users=users, dataset=self.dataset, k=k, filter_viewed=True)

    def task(self, kind: str) -> Asked:
        model = self.fit(kind)
        from rectools import metrics

        kinds = {
            "Precision": metrics.Precision,
            "Precision(r_precision=True)": partial(metrics.Precision, r_precision=True),
            "Recall": metrics.Recall,
            "HitRate": metrics.HitRate,
            "MAP": metrics.MAP,
            "NDCG(divide_by_achievable=True)": partial(metrics.NDCG, divide_by_achievable=True),
            "MRR": metrics.MRR,
        }
        made = {f"{name}@{k}": metric(k=k) for name, metric in kinds.items() for k in CUTOFFS}
        reco = self.recommend(model, max(CUTOFFS))
        wanted = ours("rectools", metrics.calc_metrics(made, reco, self.test))
        task = rectools.task(model, self.dataset, self.test)
        ties, factors = kind in {"knn", "popular"}, kind in {"als", "svd"}
        return Asked(task, wanted, ties=ties, factors=factors)

    def targets(self, kind: str) -> Ranked:
        table = self.recommend(self.fit("ease"), len(self.data.seen[0]))
        found = self.one.merge(table, on=["user_id", "item_id"]).sort_values("user_id")
        items = dict(zip(self.one["user_id"], self.data.items, strict=True))
        given = table if kind == "score" else table.drop(columns="score")
        rank, better = partial(rectools.targets, given, self.one, items=items), found["rank"] - 1
        return Ranked(rank, better, np.zeros(len(found)), self.data.items, self.data.items - 1)

    def refusals(self) -> Refusals:
        model, test = self.fit("popular"), self.test
        table, rank = self.recommend(model, 5), partial(rectools.targets, items=50)
        pairs, unknown = table[["user_id", "item_id"]], test.assign(item_id=3)
        return {
            "reco must have the columns user_id, item_id, got": (rank, table[["item_id"]], test),
            "reco must have the columns rank, got user_id, item_id": (rank, pairs, test),
            "reco must hold every target, got": (rank, table, test),
            "each item of interactions must be known .* such as 3": (
                rectools.task, model, self.dataset, unknown
            ),
        }  # fmt: skip


class PyKEEN:
    """A random graph; a question is a user."""

    tasks = tuple(f"{m}-{s}" for m in ("DistMult", "TransE") for s in ("head", "tail", "both"))
    ranked = ("DistMult-both", "TransE-tail")

    def __init__(self) -> None:
        import torch
        from pykeen.triples import CoreTriplesFactory

        rng = np.random.default_rng(0)
        triples = np.unique(rng.integers(0, (150, 3, 150), size=(900, 3)), axis=0)
        factory = CoreTriplesFactory(torch.as_tensor(triples), 150, 3)
        self.train, self.test = factory.split([0.8, 0.2], random_state=0)

    def fit(self, kind: str) -> Any:
        import pykeen.models

        made = getattr(pykeen.models, kind)
        return made(triples_factory=self.train, embedding_dim=8, random_seed=0)

    def full(self) -> Any:
        from pykeen.evaluation import RankBasedEvaluator

        return RankBasedEvaluator(clear_on_finalize=False)

    def sampled(self, negatives: int = 20, *, clear: bool = False) -> Any:
        from pykeen.evaluation import SampledRankBasedEvaluator

        random.seed(0)  # with which PyKEEN draws its negatives
        return SampledRankBasedEvaluator(
            self.test,
            additional_filter_triples=self.train.mapped_triples,
            num_negatives=negatives,
            clear_on_finalize=clear,
        )

    def by_relation(self) -> tuple[Any, np.ndarray]:
        """Return an evaluator whose negatives come from 60 entities of each relation, and these."""
        import torch
        from pykeen.evaluation import SampledRankBasedEvaluator

        rng = np.random.default_rng(0)
        pools = np.zeros((3, 150), dtype=bool)
        for relation in range(3):
            pools[relation, 45 * relation : 45 * relation + 60] = True
        true = {
            tuple(row) for part in (self.train, self.test) for row in part.mapped_triples.tolist()
        }
        drawn: dict[int, list[np.ndarray]] = {0: [], 2: []}
        for row in self.test.mapped_triples.tolist():
            for column, lists in drawn.items():
                others = [
                    [*row[:column], e, *row[column + 1 :]] for e in np.flatnonzero(pools[row[1]])
                ]
                free = [each[column] for each in others if tuple(each) not in true]
                lists.append(rng.choice(free, 20, replace=False))
        heads, tails = (torch.as_tensor(np.array(lists)) for lists in drawn.values())
        evaluator = SampledRankBasedEvaluator(
            self.test, head_negatives=heads, tail_negatives=tails, clear_on_finalize=False
        )
        self.run(evaluator, self.fit("DistMult"))
        return evaluator, pools

    def run(self, evaluator: Any, model: Any, rows: int | None = None) -> Any:
        return evaluator.evaluate(
            model,
            self.test.mapped_triples[:rows],
            additional_filter_triples=[self.train.mapped_triples],
            batch_size=64,
            use_tqdm=False,
        )

    @staticmethod
    def sides(side: str) -> tuple[str, ...]:
        return ("head", "tail") if side == "both" else (side,)

    def task(self, kind: str) -> Asked:
        from pykeen.metrics.ranking import AdjustedHitsAtK

        name, side = kind.split("-")
        model = self.fit(name)
        evaluator = self.full()
        result = self.run(evaluator, model)
        names = {
            "MRR": "inverse_harmonic_mean_rank",
            "MR": "arithmetic_mean_rank",
            "AMR": "adjusted_arithmetic_mean_rank",
            "AMRI": "adjusted_arithmetic_mean_rank_index",
            "AMRR": "adjusted_inverse_harmonic_mean_rank",
        }
        names |= {f"Hits@{k}": f"hits@{k}" for k in CUTOFFS}
        wanted = {
            name: float(result.get_metric(f"{side}.realistic.{theirs}"))
            for name, theirs in names.items()
        }
        # By name, PyKEEN knows adjusted hits at its default K alone.
        ranks, among = (
            np.concatenate([np.concatenate(held[part]) for part in sides])
            for held, sides in (
                (evaluator.ranks, [(part, "realistic") for part in self.sides(side)]),
                (evaluator.num_candidates, self.sides(side)),
            )
        )
        for k in CUTOFFS:
            wanted[f"AHits@{k}"] = float(AdjustedHitsAtK(k=k)(ranks, among))
        task = pykeen.task(model, self.test, known=self.train, side=side)
        return Asked(task, wanted, 1e-7)  # ranks of single precision

    def targets(self, kind: str) -> Ranked:
        name, side = kind.split("-")
        model, sides = self.fit(name), self.sides(side)
        few, full = self.sampled(), self.full()
        for evaluator in (few, full):
            self.run(evaluator, model)
        best, worst = (
            np.concatenate([np.concatenate(few.ranks[part, rule]) for part in sides])
            for rule in ("optimistic", "pessimistic")
        )
        # Filtered evaluation tells how many entities compete: the N of each question.
        items = np.concatenate([np.concatenate(full.num_candidates[part]) for part in sides])
        rank = partial(pykeen.targets, few, known=self.train, side=side)
        return Ranked(rank, best - 1, worst - best, items, 20)

    def refusals(self) -> Refusals:
        from pykeen.evaluation import OGBEvaluator

        model, rank = self.fit("DistMult"), pykeen.targets
        cleared, partly, crowded = self.sampled(clear=True), self.sampled(), self.sampled(149)
        for evaluator, rows in ((cleared, None), (partly, 50), (crowded, None)):
            self.run(evaluator, model, rows)
        flat, factory = np.zeros((4, 2), dtype=int), "must be a triples factory or an integer array"
        narrow, pools = self.by_relation()
        return {
            "they were drawn by relation": (partial(rank, known=self.train), narrow),
            "got a negative outside": (
                partial(rank, known=self.train, among={"head": pools, "tail": ~pools}), narrow
            ),
            "got an OGBEvaluator": (rank, OGBEvaluator(evaluation_factory=self.test)),
            "must be a SampledRankBasedEvaluator, got RankBased": (rank, self.full()),
            "got none; make it with clear_on_finalize=False": (rank, cleared),
            "side must be one of head, tail, both": (partial(rank, side="relation"), partly),
            "each of its 180 triples once, got 50 ranks": (rank, partly),
            "negatives must be different entities, got 149": (
                partial(rank, known=self.train), crowded
            ),
            f"triples {factory}": (pykeen.task, model, flat),
            f"known {factory}": (partial(pykeen.task, known=object()), model, self.test),
        }  # fmt: skip


class RecBole:
    """Loaders and trained models of one small data set, which RecBole reads from a folder."""

    tasks = ("BPR", "EASE", "NeuMF", "SASRec")
    ranked = ()
    one_target, several = {"LS": "valid_and_test"}, {"RS": [0.7, 0.1, 0.2]}

    def __init__(self) -> None:
        self.kept = tempfile.TemporaryDirectory()  # gone with this object
        folder = Path(self.kept.name)
        (folder / "toy").mkdir()
        rng = np.random.default_rng(0)
        pairs = zip(*np.nonzero(held_out(100, 150).seen), strict=True)
        rows = [f"u{u}\ti{i}\t{rng.integers(10**6)}" for u, i in pairs]
        header = "user_id:token\titem_id:token\ttimestamp:float"
        (folder / "toy" / "toy.inter").write_text("\n".join([header, *rows]))
        self.folder = str(folder)

    def settings(self, mode: str, split: dict[str, Any]) -> dict[str, Any]:
        return {
            "data_path": self.folder,
            "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
            "checkpoint_dir": self.folder,
            "eval_args": {"split": split, "order": "TO", "group_by": "user", "mode": mode},
            "metrics": ["Hit", "NDCG", "MRR", "MAP", "Recall", "Precision"],
            "topk": list(CUTOFFS),
            "metric_decimal_place": 12,
            "epochs": 1,
            "use_gpu": False,
            "state": "ERROR",
            "MAX_ITEM_LIST_LENGTH": 10,
        }

    def prepare(self, name: str, mode: str, split: dict[str, Any]) -> tuple[Any, Any, Any]:
        from recbole.config import Config
        from recbole.data import create_dataset, data_preparation
        from recbole.utils import init_seed

        options = {"train_neg_sample_args": None} if name == "SASRec" else {}
        settings = self.settings(mode, split) | options
        config = Config(model=name, dataset="toy", config_dict=settings)
        init_seed(1, reproducibility=True)
        train, _, test = data_preparation(config, create_dataset(config))
        return config, train, test

    def train(self, name: str, mode: str, split: dict[str, Any]) -> tuple[Any, Any, Any]:
        from recbole.utils import get_model, get_trainer

        config, train, test = self.prepare(name, mode, split)
        model = get_model(name)(config, train.dataset)
        trainer = get_trainer(config["MODEL_TYPE"], name)(config, model)
        trainer.fit(train, saved=False, verbose=False)
        return model, test, trainer.evaluate(test, load_best_model=False)

    def task(self, kind: str) -> Asked:
        model, test, results = self.train(kind, "full", self.several)
        task = recbole.task(model, test)
        return Asked(task, ours("recbole", results), ties=kind == "EASE")

    def refusals(self) -> Refusals:
        model, full, _ = self.train("EASE", "full", self.several)
        several, one, popular = (
            self.prepare("EASE", mode, split)[2]
            for mode, split in (
                ("uni50", self.several), ("uni50", self.one_target), ("pop50", self.one_target)
            )
        )  # fmt: skip
        rank, printed = recbole.targets, recbole.published
        return {
            "loader must draw items uniformly, got 'popularity'": (rank, model, popular),
            "one target for each user, got up to": (printed, {"hit@10": 0.5}, several),
            "one of hit, .* got itemcoverage@10": (printed, {"itemcoverage@10": 0.5}, one),
            "must be made under mode: full, got NegSample": (recbole.task, model, one),
            "must be made under mode: uniN, got FullSort": (rank, model, full),
        }


LIBRARIES: dict[str, Any] = {
    "implicit": Implicit,
    "cornac": Cornac,
    "lenskit": LensKit,
    "rectools": RecTools,
    "pykeen": PyKEEN,
    "recbole": RecBole,
}
