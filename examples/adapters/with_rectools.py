"""RecTools: from a fitted model and its dataset to metrics on the whole catalogue."""

import pandas as pd
from implicit.als import AlternatingLeastSquares
from rectools.dataset import Dataset
from rectools.models import ImplicitALSWrapperModel

import unsample
from unsample.adapters import rectools


def their_objects():
    """Fit a model of RecTools, as you would without unsample."""
    data = unsample.lab.datasets.synthetic(400, 1000, rng=0)
    split = unsample.lab.datasets.leave_random_out(data, rng=0)
    train = pd.DataFrame({"user_id": split.train.user, "item_id": split.train.item})
    dataset = Dataset.construct(train.assign(weight=1, datetime="2026-01-01"))
    test = pd.DataFrame({"user_id": split.target_user, "item_id": split.target_item})
    als = AlternatingLeastSquares(factors=16, iterations=5, num_threads=1, random_state=0)
    model = ImplicitALSWrapperModel(als).fit(dataset)
    return model, dataset, test[test["item_id"].isin(train["item_id"])]


def full_catalogue(model, dataset, test):
    """Ask the model about few items, and know its metrics among all of them."""
    task = rectools.task(model, dataset, test)
    return unsample.evaluate(
        task.scorer, task.targets, items=task.items, exclude=task.exclude, design="certified"
    )


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
