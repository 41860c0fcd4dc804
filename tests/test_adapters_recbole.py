"""RecBole itself; run in an environment of its own by tools/try_adapters.py."""

import numpy as np
import pytest

from tests.libraries import evaluate, held_out, need_library
from unsample.adapters import recbole
from unsample.errors import DesignError, InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own warnings

ONE_TARGET, SEVERAL = {"LS": "valid_and_test"}, {"RS": [0.7, 0.1, 0.2]}
METRICS = ["Recall@10", "NDCG@10", "MRR@10"]


class Kitchen:
    """Makes loaders and trained models of one small data set."""

    def __init__(self, folder):
        data = held_out(100, 150)
        (folder / "toy").mkdir()
        rng = np.random.default_rng(0)
        rows = [f"u{u}\ti{i}\t{rng.integers(10**6)}" for u, i in zip(*data.pairs(), strict=True)]
        header = "user_id:token\titem_id:token\ttimestamp:float"
        (folder / "toy" / "toy.inter").write_text("\n".join([header, *rows]))
        self.folder = str(folder)

    def prepare(self, name, mode, split):
        from recbole.config import Config
        from recbole.data import create_dataset, data_preparation
        from recbole.utils import init_seed

        options = {"train_neg_sample_args": None} if name == "SASRec" else {}
        settings = {
            "data_path": self.folder,
            "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
            "checkpoint_dir": self.folder,
            "eval_args": {"split": split, "order": "TO", "group_by": "user", "mode": mode},
            "metrics": ["Hit", "NDCG", "MRR"],
            "topk": [1, 5, 10],
            "epochs": 1,
            "use_gpu": False,
            "state": "ERROR",
            "MAX_ITEM_LIST_LENGTH": 10,
        }
        config = Config(model=name, dataset="toy", config_dict=settings | options)
        init_seed(1, reproducibility=True)
        train, _, test = data_preparation(config, create_dataset(config))
        return config, train, test

    def train(self, name, mode, split):
        from recbole.utils import get_model, get_trainer

        config, train, test = self.prepare(name, mode, split)
        model = get_model(name)(config, train.dataset)
        trainer = get_trainer(config["MODEL_TYPE"], name)(config, model)
        trainer.fit(train, saved=False, verbose=False)
        return model, test, trainer.evaluate(test, load_best_model=False)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """RecBole writes logs to where it is run."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    need_library("recbole")
    return Kitchen(tmp_path_factory.mktemp("recbole"))


@pytest.mark.parametrize("name", ["BPR", "EASE", "NeuMF", "SASRec"])
def test_a_task_gives_the_metrics_of_full_evaluation(kitchen, name):
    model, test, results = kitchen.train(name, "full", ONE_TARGET)
    task = recbole.task(model, test)
    for design in ("exact", "certified"):
        found = evaluate(task, design, METRICS)
        for metric, theirs in zip(METRICS, ("hit@10", "ndcg@10", "mrr@10"), strict=True):
            assert found[metric].value == pytest.approx(results[theirs], abs=6e-5)  # they round
    assert (task.exclude is None) == (name == "SASRec")
    assert task.item_ids[0].startswith("i")
    assert task.user_ids[0].startswith("u")


@pytest.mark.parametrize("split", [ONE_TARGET, SEVERAL])
def test_uniform_samples_are_ranked_each_among_its_own(kitchen, split):
    from scipy import stats

    model, test, _ = kitchen.train("EASE", "full", split)
    task = recbole.task(model, test)
    exact = evaluate(task).ranks
    _, _, loader = kitchen.prepare("EASE", "uni50", split)
    found = [recbole.targets(model, loader, rng=seed) for seed in range(40)]
    assert (np.asarray(found[0].sampled) == 50).all()
    assert len(found[0].ranks) == len(exact)
    # What a user knows was not drawn: N is what a full ranking leaves.
    seen = np.diff(task.exclude.indptr)[task.targets[0]]
    others = np.bincount(task.targets[0])[task.targets[0]] - 1
    assert np.array_equal(found[0].items, task.items - seen - others)
    if split is SEVERAL:
        assert np.allclose(np.bincount(found[0].users, found[0].weights)[found[0].users], 1)
        return
    # Over many passes, each rank has the mean that its full rank and the binomial law give.
    chance = (exact - 1) / (found[0].items - 1)
    mean = np.mean([one.ranks - 1 for one in found], axis=0)
    error = np.sqrt(50 * chance * (1 - chance) / len(found)) + 1e-9
    z = (mean - 50 * chance) / error
    inside = (chance > 0) & (chance < 1)
    assert stats.kstest(z[inside], "norm").pvalue > 1e-3


def test_a_sequential_model_draws_from_all_items(kitchen):
    model, _, _ = kitchen.train("SASRec", "full", ONE_TARGET)
    _, _, loader = kitchen.prepare("SASRec", "uni50", ONE_TARGET)
    found = recbole.targets(model, loader)
    assert (np.asarray(found.items) == loader.dataset.item_num - 1).all()


def test_printed_metrics_and_ranks_lead_to_the_same_place(kitchen):
    model, test, results = kitchen.train("EASE", "uni50", ONE_TARGET)
    from_print = recbole.published(results, test, metrics="Recall@20")["Recall@20"]
    _, full, _ = kitchen.train("EASE", "full", ONE_TARGET)
    truth = evaluate(recbole.task(model, full), metrics=["Recall@20"])["Recall@20"].value
    low, high = from_print.interval(0.99)
    assert low <= truth <= high


def test_bad_input_gets_one_clear_message(kitchen):
    model, full, _ = kitchen.train("EASE", "full", SEVERAL)
    _, _, several = kitchen.prepare("EASE", "uni50", SEVERAL)
    _, _, one = kitchen.prepare("EASE", "uni50", ONE_TARGET)
    _, _, popular = kitchen.prepare("EASE", "pop50", ONE_TARGET)
    with pytest.raises(InputError, match="loader must draw items under mode: uniN, got FullSort"):
        recbole.targets(model, full)
    with pytest.raises(InputError, match="loader must be made under mode: full, got NegSample"):
        recbole.task(model, one)
    with pytest.raises(DesignError, match="loader must draw items uniformly, got 'popularity'"):
        recbole.targets(model, popular)
    with pytest.raises(DesignError, match="results must be of one target a user, got up to"):
        recbole.published({"hit@10": 0.5}, several)
    with pytest.raises(InputError, match=r"results must hold one of hit, .* got itemcoverage@10"):
        recbole.published({"itemcoverage@10": 0.5}, one)
    with pytest.raises(InputError, match="model must be a model of recbole, got str"):
        recbole.targets("EASE", one)
    with pytest.raises(InputError, match="ties must be random, optimistic or pessimistic"):
        recbole.targets(model, one, ties="realistic")
