"""What models do with the items that a user has seen: ``benchmarks/pushes.py``.

For many models and data sets the ranks of the same targets are known among all items and among
unseen ones. A push (`unsample.posterior._own_items.Push`) makes the first from the second. Printed
are, for each model, the push that does it best, and how near it comes to NDCG@10 among all items;
then how often each of the pushes that the prior uses is the best: expectation-maximisation over
rank sets, in which models weigh the same. Likelihoods are tempered, for no push is exact. The last
columns are the extremes where a family of data sets is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from calibration import FURTHER

from unsample.lab.corpus import Corpus, RankSet, load_corpus
from unsample.posterior._own_items import PUSHES, OwnItems, push_matrix
from unsample.sampling import RankGrid

#: Ranks that are compared, one by one; sizes of sampled catalogues hardly matter here.
FIRST = 100
#: Log-likelihoods are divided by this.
TEMPER = 20.0
ROUNDS = 300
_TINY = 1e-7


@dataclass(frozen=True, eq=False)
class Fitted:
    """One model on one data set: the log-likelihood of each push, and what it gives."""

    model: str
    family: str
    log_likelihood: np.ndarray
    #: The logarithm of NDCG@10 as the best push has it, over the true one.
    error: float


def first_ranks(one: RankSet) -> np.ndarray:
    """Return the share of the targets at each of the first ranks."""
    ranks = one.ranks()
    return np.bincount(ranks[ranks <= FIRST], minlength=FIRST + 1)[1:] / len(ranks)


def fitted() -> Iterator[Fitted]:
    """Compare the ranks among all items with those among unseen ones, pushed."""
    sets = [*load_corpus(), *(each for path in FURTHER for each in Corpus.load(path))]
    known = {(one.dataset, one.model, one.kind): one for one in sets if not one.partial}
    discount = 1.0 / np.log2(np.arange(1, 11) + 1)
    # One bin more, into which targets are pushed out of the first ranks.
    grid = RankGrid(np.arange(1, FIRST + 2), FIRST + 1)
    for (dataset, model, kind), one in known.items():
        unseen = known.get((dataset, model, "unseen"))
        if kind != "all" or unseen is None:
            continue
        before = first_ranks(unseen)
        after = first_ranks(one)
        said = []
        for push in PUSHES:
            matrix = push_matrix(grid, OwnItems.of(push, one.seen))
            said.append(np.maximum(matrix[:FIRST, :FIRST] @ before, _TINY))
        rest = [max(1.0 - float(each.sum()), _TINY) for each in said]
        likely = [
            float(after @ np.log(each)) + (1.0 - after.sum()) * np.log(left)
            for each, left in zip(said, rest, strict=True)
        ]
        log_likelihood = one.targets * np.array(likely)
        best = said[int(np.argmax(log_likelihood))]
        truth = max(float(after[:10] @ discount), 1e-5)
        error = float(np.log(best[:10] @ discount / truth))
        yield Fitted(model, one.family, log_likelihood, error)


def weights_of(found: list[Fitted]) -> np.ndarray:
    """Return how often each push is the best."""
    models = [each.model for each in found]
    weight = np.array([1.0 / models.count(model) for model in models])
    tempered = np.stack([each.log_likelihood for each in found]) / TEMPER
    tempered -= tempered.max(axis=1, keepdims=True)
    shares = np.full(len(PUSHES), 1.0 / len(PUSHES))
    for _ in range(ROUNDS):
        responsible = np.exp(tempered) * shares
        responsible /= responsible.sum(axis=1, keepdims=True)
        shares = weight @ responsible / weight.sum()
    return shares


def main() -> None:
    found = list(fitted())
    print("model, data sets, error of log NDCG@10 (5 %, median, 95 %), best pushes")
    for model in sorted({each.model for each in found}):
        some = [each for each in found if each.model == model]
        errors = np.quantile([each.error for each in some], [0.05, 0.5, 0.95])
        best = np.bincount([int(np.argmax(e.log_likelihood)) for e in some], minlength=len(PUSHES))
        print(f"{model:10} {len(some):3}  {errors.round(2)}  {best}")
    families = sorted({each.family for each in found})
    left_out = np.stack([weights_of([e for e in found if e.family != one]) for one in families])
    print("share above, evenness, how often (used today), without a family")
    for number, (push, share) in enumerate(zip(PUSHES, weights_of(found), strict=True)):
        low = left_out[:, number].min()
        high = left_out[:, number].max()
        used = f"{share:.3f} ({push.probability})"
        print(f"{push.share:5} {push.evenness:5}  {used}  {low:.2f} .. {high:.2f}")
    near = np.mean([abs(each.error) <= 0.25 for each in found])
    print(f"of {len(found)} rank sets {near:.0%} have an error of at most 0.25")


if __name__ == "__main__":
    main()
