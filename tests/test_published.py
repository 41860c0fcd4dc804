"""Numbers of papers: reading them, refusing contradictions, and estimating from them."""

from decimal import Decimal

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample.answers import published
from unsample.errors import ContradictionError, InputError, RefutedWarning
from unsample.lab.datasets import load_ranks
from unsample.law import draw_sampled_ranks

PAPER = {"HR@1": "0.180", "HR@10": "0.690", "NDCG@10": "0.402"}
SETUP = {"items": 3706, "sampled": 99, "users": 6040}
PRINTED = ("HR@1", "HR@5", "HR@10", "NDCG@10")


def _print(ranks: np.ndarray, digits: int, names: tuple[str, ...] = PRINTED) -> dict[str, str]:
    """Return sampled metrics as a paper would print them."""
    metrics = unsample.exact(ranks, items=100, metrics=names)
    return {name: f"{metrics[name].value:.{digits}f}" for name in names}


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_more_numbers_narrow_the_limits_and_the_prior_fills_in_what_they_leave_open():
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    ranks = draw_sampled_ranks(full.ranks, items=full.items, sampled=99, rng=0)
    setup = SETUP | {"items": 3541, "candidates": "unseen", "metrics": "Recall@10"}
    truth, widths = float(np.mean(full.ranks <= 10)), []
    for names, within in ((("HR@10",), 2.5), (PRINTED, 1.15)):
        found = published(_print(ranks, 3, names), **setup)["Recall@10"]
        assert truth / within < found.value < truth * within
        low, high = found.interval()
        assert low < truth < high
        widths.append((high - low, np.ptp(found.bounds())))
    assert widths[1] < widths[0]


def test_numbers_that_no_ranks_but_some_histogram_can_give_are_reported():
    with pytest.warns(RefutedWarning, match=r"HR@50 = 0.001 and HR@51 = 0.900 but for chance"):
        result = published({"HR@50": "0.001", "HR@51": "0.900", "HR@90": "0.950"}, **SETUP)
    assert result["Recall@10"].bounds() == result["Recall@10"].interval() == (0.0, 1.0)
    assert result["Recall@10"].source == "bounds"


def test_without_a_prior_the_interval_is_the_bounds_of_the_numbers():
    found = published(PAPER, **SETUP, metrics=["Recall@10", "Recall@200"], prior=None)
    for entry in found.values():
        assert entry.source == "bounds"
        assert entry.interval(0.9) == entry.bounds(0.9) == found.paper.bounds(entry.metric, 0.9)
    later = published(PAPER, **SETUP, metrics="Recall@10").metric("Recall@200")
    assert later.bounds() == pytest.approx(found["Recall@200"].bounds(), abs=1e-6)
    asked = published(PAPER, **SETUP, metrics="Recall@200")["Recall@200"]
    assert later.to_dict() == asked.to_dict()


@pytest.mark.parametrize(
    ("numbers", "options", "low", "high"),
    [
        ({"HR@10": "0.690"}, {}, 0.6895, 0.6905),
        ({"HR@10": Decimal("0.690")}, {}, 0.6895, 0.6905),
        ({"HR@10": 0.4, "HR@1": 0.18}, {}, 0.395, 0.405),
        ({"HR@10": "0.4", "HR@1": 0.18}, {}, 0.35, 0.45),
        ({"HR@10": "69.0"}, {"percent": True}, 0.6895, 0.6905),
        ({"HR@10": 1}, {}, 0.5, 1.5),
    ],
)
def test_rounding_is_read_from_the_digits(numbers, options, low, high):
    first = published(numbers, **SETUP, **options).numbers[0]
    assert (first.low, first.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("numbers", "names"),
    [
        ({"HR@1": 0.30, "HR@10": 0.69, "NDCG@10": 0.72}, ("HR@10", "NDCG@10")),
        ({"HR@1": "0.10", "HR@10": "0.69", "NDCG@10": "0.50"}, ("HR@1", "HR@10", "NDCG@10")),
        ({"HR@5": 0.5, "HR@10": 0.4}, ("HR@5", "HR@10")),
        ({"AUC": "0.900", "HR@1": "0.100", "MRR": "0.700"}, ("HR@1", "MRR")),
    ],
)
def test_the_fewest_numbers_that_clash_are_named(numbers, names):
    with pytest.raises(ContradictionError) as caught:
        published(numbers, **SETUP)
    assert caught.value.names == names
    assert all(name in str(caught.value) for name in names)


@pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")
@pytest.mark.parametrize(("sign", "gain"), [(-1, np.log2(11)), (1, np.log2(3))])
def test_the_limits_of_a_contradiction_are_sharp(sign, gain):
    """With a hits at 1 and b - a at 2..10, NDCG@10 is a + (b - a)/log2(r + 1), r from 10 to 2."""
    hits, more = 0.2, 0.5
    edge = hits + (more - hits) / gain
    inside, outside = (f"{edge - shift * sign:.6f}" for shift in (2e-5, -2e-5))
    numbers = {"HR@1": "0.200000", "HR@10": "0.500000"}
    published(numbers | {"NDCG@10": inside}, **SETUP)
    with pytest.raises(ContradictionError, match="contradict each other"):
        published(numbers | {"NDCG@10": outside}, **SETUP)


@pytest.mark.parametrize(
    ("numbers", "options", "message"),
    [
        ({}, {}, "must be a mapping"),
        ({"HR@10": 69.1}, {}, "is it a percentage"),
        ({"HR@10": 120.0}, {"percent": True}, "between 0 and 1, got 1.2"),
        ({"HR@10": float("nan")}, {}, "finite number"),
        ({"HR@10": "about 0.7"}, {}, "number as printed"),
        ({"HR@10": 0.5, "Recall@10": 0.5}, {}, "HR@10 and Recall@10"),
        ({"HR@100": 0.5}, {}, "at most sampled = 99"),
        ({"HR@10": 0.5}, {"items": 99, "sampled": 3706}, "swapped"),
        ({"HR@10": 0.5}, {"runs": 0}, "runs must be an integer of at least 1"),
        ({"HR@10": 0.5}, {"users": 0}, "users must be an integer of at least 1"),
        ({"HR@10": "0.690"}, {"users": 7}, "0.5714 and 0.7143"),
        ({"HR@10": 0.5}, {"replacement": False, "items": 50}, "at most items - 1"),
    ],
)
def test_bad_input_is_refused_with_a_reason(numbers, options, message):
    with pytest.raises(InputError, match=message):
        published(numbers, **(SETUP | options))


# -- promises -------------------------------------------------------------------------------------


def _coverage(items_factor: float, simulations: int, candidates: str) -> float:
    """Return the least coverage over metrics of 95 % intervals from four printed numbers."""
    names = [f"{family}@{k}" for family in ("Recall", "NDCG", "AP") for k in (5, 10, 50, 100)]
    worst = 1.0
    for dataset, recommender in (("ml-1m", "ease"), ("ml-1m", "neumf"), ("citeulike-a", "als")):
        bundled = load_ranks(dataset, recommender, candidates=candidates)
        users, items = len(bundled), float(bundled.items.mean())
        truth = unsample.exact(bundled.ranks, items=bundled.items, metrics=names)
        rng = np.random.default_rng(21)
        covered = np.zeros(len(names))
        for _ in range(simulations):
            drawn = rng.integers(users, size=users)
            ranks = draw_sampled_ranks(
                bundled.ranks[drawn], items=bundled.items[drawn], sampled=99, rng=rng
            )
            result = published(
                _print(ranks, 4),
                items=round(items * items_factor),
                sampled=99,
                users=users,
                metrics=names,
                candidates=candidates,
            )
            limits = np.array([result[name].interval() for name in names])
            exact = np.array([truth[name].value for name in names])
            covered += (limits[:, 0] <= exact) & (exact <= limits[:, 1])
        worst = min(worst, float(covered.min()) / simulations)
    return worst


def _findings(items_factor: float, size: int, candidates: str) -> list[Finding]:
    promise = "intervals from printed numbers cover the exact metrics"
    least = _coverage(items_factor, size, candidates)
    return [Finding(promise, candidates, "least coverage", least, 0.93, True, size)]


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_intervals_from_printed_numbers_cover_the_exact_metrics(candidates, ledger):
    keep(ledger(_findings(1.0, simulations(40), candidates)))


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_a_wrong_catalogue_does_not_cover(ledger):
    findings = ledger(_findings(4.0, 10, "unseen"), planted="N four times too large, published")
    with pytest.raises(BrokenPromiseError):
        keep(findings)
    assert findings[0].value < 0.5


def test_means_of_runs_are_taken():
    options = {"items": 3706, "sampled": 99, "metrics": "Recall@100"}
    # The mean of five runs on 40 users: a fifth of a hit.
    mean = {"HR@1": "0.105", "HR@10": "0.480"}
    with pytest.raises(ContradictionError, match="must be a number of hits"):
        published(mean, users=40, **options)
    assert published(mean, users=40, runs=5, **options)["Recall@100"].value > 0.1
