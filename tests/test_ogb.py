"""OGB's and TGB's evaluators: what they print, from their definitions, and what follows from it."""

import numpy as np
import pytest

import unsample
from tests.libraries import need_library
from unsample.adapters import ogb
from unsample.errors import DesignError, InputError, ScoreError

KEYS = ["hits@1_list", "hits@3_list", "hits@10_list", "mrr_list"]


def tied_scores(edges=200, negatives=30, seed=0):
    """Return scores with many ties."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 12, edges) / 4.0, rng.integers(0, 9, (edges, negatives)) / 4.0


def slow_ranks(own, others):
    """The mean of the best and the worst rank among ties, written out."""
    found = []
    for score, row in zip(own, others, strict=True):
        optimistic = sum(other > score for other in row)
        pessimistic = sum(other >= score for other in row)
        found.append(0.5 * (optimistic + pessimistic) + 1)
    return np.array(found)


def test_own_negatives_print_what_the_definition_says():
    own, others = tied_scores()
    ranks = slow_ranks(own, others)
    assert (ranks % 1 == 0.5).any()
    found = ogb.evaluate(own, others)
    assert list(found) == KEYS
    assert np.array_equal(found["mrr_list"], 1.0 / ranks)
    for k in (1, 3, 10):
        assert np.array_equal(found[f"hits@{k}_list"], ranks <= k)
    wanted = {"hits@10": np.mean(ranks <= 10), "mrr": np.mean(1.0 / ranks)}
    assert ogb.evaluate_tgb(own, others) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("k", [1, 5, 30, 31])
def test_shared_negatives_count_what_is_above_the_kth(k):
    own, others = tied_scores()
    shared = others[0]
    above = [sum(other >= score for other in shared) < k for score in own]
    assert ogb.evaluate(own, shared, k=k) == {f"hits@{k}": pytest.approx(np.mean(above))}


@pytest.mark.parametrize("shared", [False, True])
def test_targets_lie_between_the_best_and_the_worst_rank(shared, monkeypatch):
    own, others = tied_scores()
    others = others[0] if shared else others
    rows = np.broadcast_to(others, (len(own), 30))
    kept = ogb.targets(own, others, items=500)
    monkeypatch.setattr(ogb, "_MOST_PAIRS", 0)
    for ties in ("optimistic", "pessimistic", "random"):
        found = ogb.targets(own, others, items=500, ties=ties)
        better = (rows > own[:, None]).sum(axis=1)
        tied = (rows == own[:, None]).sum(axis=1)
        low = 1 + better + (tied if ties == "pessimistic" else 0)
        high = 1 + better + (tied if ties != "optimistic" else 0)
        assert ((low <= found.ranks) & (found.ranks <= high)).all()
        assert (found.counts.pools is not None) == shared
    # Of shared negatives it is kept which beats which, unless there are too many.
    assert (kept.outcomes is not None) == shared
    assert found.outcomes is None


def test_metrics_among_all_items_follow_from_sampled_ones():
    rng = np.random.default_rng(1)
    items, edges = 4000, 1500
    full = rng.normal(size=(edges, items - 1))
    own = rng.normal(2.0, 1.0, edges)
    ranks = 1 + (full > own[:, None]).sum(axis=1)
    truth = unsample.exact(ranks, items=items, metrics=["Hits@100", "MRR"], resamples=0)
    drawn = np.take_along_axis(full, rng.integers(0, items - 1, (edges, 200)), axis=1)
    found = unsample.estimate(
        ogb.targets(own, drawn, items=items), metrics=["Hits@100", "MRR"], candidates="unseen"
    )
    for name in found:
        low, high = found[name].interval()
        assert low <= truth[name].value <= high
    printed = ogb.evaluate(own, drawn)["mrr_list"].mean()
    assert abs(found["MRR"].value - truth["MRR"].value) < 0.2 * (printed - truth["MRR"].value)


def test_negatives_of_the_past_are_refused():
    with pytest.raises(DesignError, match=r"got 'historical': up to half .*unsample.evaluate"):
        ogb.targets([1.0], [[0.0]], items=9, sampler="historical")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ogb.evaluate([[1.0]], [1.0], k=1), InputError, r"y_pred_pos .* shape \(1, 1\)"),
        (lambda: ogb.evaluate([1.0, 2.0], np.ones((3, 4))), InputError, "each of the 2 edges"),
        (lambda: ogb.evaluate([1.0], [1.0]), InputError, "k must be an integer .* K of hits@K"),
        (lambda: ogb.evaluate([np.nan], [1.0], k=1), ScoreError, "y_pred_pos must hold numbers"),
        (lambda: ogb.targets([1.0], [[0.0]], items=9, sampler="popular"), DesignError, "'popular'"),
        (lambda: ogb.targets([1.0], [[0.0]], items=9, ties="realistic"), InputError, "ties must"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    own, others = tied_scores()
    tensors = torch.tensor(own, requires_grad=True), torch.as_tensor(others)
    assert np.array_equal(ogb.evaluate(*tensors)["mrr_list"], ogb.evaluate(own, others)["mrr_list"])


@pytest.mark.filterwarnings("ignore")
def test_the_real_evaluator_agrees():
    need_library("ogb")
    import torch
    from ogb.linkproppred import Evaluator

    own, others = tied_scores()
    pos, neg = torch.as_tensor(own), torch.as_tensor(others)
    theirs = Evaluator("ogbl-citation2").eval({"y_pred_pos": pos, "y_pred_neg": neg})
    ours = ogb.evaluate(own, others)
    assert list(theirs) == list(ours)
    for key in KEYS:
        # Theirs are of single precision; as such they are the same.
        assert np.array_equal(theirs[key].numpy(), ours[key].astype(np.float32))
    for name, k in (("ogbl-ppa", 100), ("ogbl-collab", 50), ("ogbl-ddi", 20)):
        shared = np.random.default_rng(3).integers(0, 900, 300) / 300.0
        theirs = Evaluator(name).eval({"y_pred_pos": own, "y_pred_neg": shared})
        assert theirs == pytest.approx(ogb.evaluate(own, shared, k=k), abs=1e-12)
