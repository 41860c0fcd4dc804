"""RecBole: from a uni100 evaluation to metrics on the whole catalogue."""

import tempfile
from pathlib import Path

from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.model.general_recommender import EASE
from recbole.trainer import Trainer
from recbole.utils import init_seed

import unsample
from unsample.adapters import recbole


def their_config(folder):
    """Write a data set, and choose an evaluation against 100 items, as papers do."""
    data = unsample.lab.datasets.synthetic(400, 1000, rng=0)
    rows = [f"u{u}\ti{i}" for u, i in zip(data.user, data.item, strict=True)]
    Path(folder, "toy").mkdir()
    Path(folder, "toy", "toy.inter").write_text("\n".join(["user_id:token\titem_id:token", *rows]))
    return {
        "data_path": folder,
        "checkpoint_dir": folder,
        "eval_args": {"split": {"LS": "test_only"}, "order": "RO", "mode": "uni100"},
        "metrics": ["Hit", "Recall", "NDCG", "MRR"],
        "topk": [1, 5, 10, 20, 50],
        "epochs": 1,
        "use_gpu": False,
        "state": "ERROR",
        "show_progress": False,
    }


def their_objects(config_dict):
    """Train a model and evaluate it with RecBole."""
    config = Config(model="EASE", dataset="toy", config_dict=config_dict)
    init_seed(config["seed"], config["reproducibility"])
    train, _, test = data_preparation(config, create_dataset(config))
    model = EASE(config, train.dataset)
    trainer = Trainer(config, model)
    trainer.fit(train, saved=False, verbose=False)
    return trainer, model, test


def in_one_line(config_dict):
    """Run RecBole as `run_recbole` does; its results have the full-catalogue numbers."""
    done = recbole.run("EASE", "toy", config_dict=config_dict, saved=False)
    return done["test_result"]  # ndcg@10, ndcg@10_full, ndcg@10_low, ndcg@10_high, ...


def watched(trainer, test):
    """Do the same with a trainer that there is already."""
    results = recbole.watch(trainer).evaluate(test, load_best_model=False)
    return results, trainer.full_catalogue  # with health and bounds


def full_catalogue(model, test):
    """Tell the metrics among all items from ranks among 100 drawn ones."""
    found = recbole.targets(model, test)
    return unsample.estimate(found.counts, metrics=["Recall@50", "NDCG@50"], candidates="unseen")


def from_printed_metrics(results, test):
    """Do the same where only the printed metrics are left."""
    return recbole.published(results, test, metrics=["Recall@50", "NDCG@50"])


def main():
    """Return the results, one for each way to the whole catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        config = their_config(folder)
        trainer, model, test = their_objects(config)
        results, estimates = watched(trainer, test)
        numbers = in_one_line(config)
        return [
            full_catalogue(model, test),
            {name: estimates[name] for name in ("Recall@50", "NDCG@50")},
            {"Recall@50": numbers["recall@50_full"], "NDCG@50": numbers["ndcg@50_full"]},
            from_printed_metrics(results, test),
        ]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
