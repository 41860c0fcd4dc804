"""implicit: from a fitted model to metrics on the whole catalogue."""

from implicit.als import AlternatingLeastSquares
from scipy import sparse

import unsample
from unsample.adapters import implicit


def their_objects():
    """Fit a model of implicit, as you would without unsample."""
    data = unsample.lab.datasets.synthetic(400, 1000, rng=0)
    split = unsample.lab.datasets.leave_random_out(data, rng=0)
    train = sparse.csr_matrix(split.train.matrix(), dtype="float32")
    pairs = split.target_user, split.target_item
    test = sparse.csr_matrix(([1.0] * len(pairs[0]), pairs), shape=train.shape)
    model = AlternatingLeastSquares(factors=16, iterations=5, num_threads=1, random_state=0)
    model.fit(train, show_progress=False)
    return model, train, test


def full_catalogue(model, train, test):
    """Ask the model about few items, and know its metrics among all of them."""
    task = implicit.task(model, train, test)
    return unsample.evaluate(
        task.scorer, task.targets, items=task.items, exclude=task.exclude, design="certified"
    )


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
