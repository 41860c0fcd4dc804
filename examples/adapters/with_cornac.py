"""Cornac: from a fitted model and its evaluation method to metrics on the whole catalogue."""

import cornac

import unsample
from unsample.adapters import cornac as adapter


def their_objects():
    """Split the data and fit a model with Cornac, as you would without unsample."""
    data = unsample.lab.datasets.synthetic(400, 1000, rng=0)
    ratings = [(f"u{u}", f"i{i}", 1.0) for u, i in zip(data.user, data.item, strict=True)]
    method = cornac.eval_methods.RatioSplit(ratings, test_size=0.1, rating_threshold=1.0, seed=1)
    model = cornac.models.BPR(k=16, max_iter=50, seed=1)
    model.fit(method.train_set)
    return model, method


def full_catalogue(model, method):
    """Ask the model about few items, and know its metrics among all of them."""
    task = adapter.task(model, method)
    return unsample.evaluate(
        task.scorer, task.targets, items=task.items, exclude=task.exclude, design="certified"
    )


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
