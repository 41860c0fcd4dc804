"""Full rankings on a device equal those of the processor: fused where there is CUDA."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import unsample
from unsample.errors import InputError, ScoreError
from unsample.scoring import Candidates, FactorScores, RowScores, _cuda, count_all
from unsample.scoring._cuda import PRECISIONS

torch = pytest.importorskip("torch")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
#: (device, engine) pairs; CUDA ones are skipped where there is none.
PLACES = [
    ("cpu", "products"),
    ("cpu", "kernels"),
    pytest.param(("cuda", "products"), marks=needs_cuda),
    pytest.param(("cuda", "kernels"), marks=needs_cuda),
]
ITEMS = 700


def world(users=150, dim=20, *, whole=True):
    """Factors (small whole numbers, which no precision rounds, make many ties) and targets."""
    rng = np.random.default_rng(0)
    left, right = (
        rng.integers(-2, 3, size=(n, dim)) if whole else rng.normal(size=(n, dim))
        for n in (users, ITEMS)
    )
    targets = rng.integers(users, size=2 * users), rng.integers(ITEMS, size=2 * users)
    seen = csr_array(rng.random((users, ITEMS)) < 0.1)
    return FactorScores(left.astype(np.float32), right.astype(np.float32)), targets, seen


def counts(factors, targets, exclude=None, *where):
    """Return how many items beat each target, how many tie, and the targets' own scores."""
    parts = list(count_all(factors, Candidates.check(targets, ITEMS, exclude), *where))
    return [np.concatenate(each) for each in list(zip(*parts, strict=True))[1:]]


@pytest.fixture
def engine(request, monkeypatch):
    """Choose what counts; without CUDA, the processor stands in for the kernels."""
    device, name = request.param
    fused = name == "kernels"
    monkeypatch.setattr(_cuda, "_is_fused", lambda _, dim: fused and dim <= _cuda._LARGEST_DIM)
    if (device, name) == ("cpu", "kernels"):
        monkeypatch.setattr(_cuda, "_TARGETS", 64)
        for kernel in (own_scores, count_above, count_excluded):
            monkeypatch.setattr(_cuda, kernel.__name__, kernel)
    return device


def own_scores(users, items, targets, launch):
    return (users.float() * items[targets].float()).sum(1)


def count_above(users, items, own, launch):
    scores = users.float() @ items.float().T
    return (scores > own[:, None]).sum(1), (scores >= own[:, None]).sum(1)


def count_excluded(users, items, own, starts, excluded, launch):
    row = torch.repeat_interleave(torch.arange(len(users)), starts.diff())
    scores = (users[row].float() * items[excluded].float()).sum(1)
    which = scores > own[row], scores >= own[row]
    return tuple(torch.bincount(row[each], minlength=len(users)) for each in which)


@pytest.mark.parametrize("engine", PLACES, indirect=True)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("users", "dim"), [(1, 3), (150, 20), (150, 128), (300, 129)])
def test_counts_equal_those_of_the_processor(engine, precision, users, dim):
    factors, targets, seen = world(users, dim)
    for exclude in (None, seen):
        expected = counts(factors, targets, exclude)
        found = counts(factors, targets, exclude, engine, precision)
        assert all(map(np.array_equal, found, expected))
    assert expected[1].any()


# The stand-in adds in another order for the target than for the items.
@pytest.mark.parametrize("engine", [PLACES[0], *PLACES[2:]], indirect=True)
@pytest.mark.parametrize(("precision", "off"), [("float32", 1e-3), ("bfloat16", 0.1)])
def test_rounding_moves_ranks_of_real_numbers_but_little(engine, precision, off):
    factors, targets, _ = world(whole=False)
    expected = 1 + counts(factors, targets)[0]
    found = 1 + counts(factors, targets, None, engine, precision)[0]
    assert (np.abs(found - expected) / expected).mean() < off


def test_evaluate_ranks_on_the_device():
    factors, (_, targets), _ = world()
    pair, rows = (factors.user_factors, factors.item_factors), np.arange(150)
    given = {"targets": (rows, targets[rows]), "items": ITEMS, "metrics": "NDCG@10"}
    there = unsample.evaluate(pair, **given, run=unsample.Run(device="cpu", precision="bfloat16"))
    assert np.array_equal(there.ranks, unsample.evaluate(pair, **given).ranks)


@pytest.mark.parametrize("seed", range(5))
def test_evaluate_takes_rounded_factors_for_the_same_scores(seed):
    """A few scores are asked for twice: once of the factors, and once rounded to bfloat16."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(400, 6)), rng.normal(size=(ITEMS, 6))
    given = {"targets": (np.arange(400), rng.integers(ITEMS, size=400)), "items": ITEMS}
    there = unsample.evaluate(
        factors, **given, run=unsample.Run(device="cpu", precision="bfloat16")
    )
    whole = unsample.evaluate(factors, **given)
    assert np.mean(np.abs(there.ranks - whole.ranks) / whole.ranks) < 0.1


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (("cpu", "float16"), "precision must be one of"),
        (("abacus",), "device must be one of torch"),
        pytest.param(
            ("cuda",),
            "torch finds no CUDA device",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
    ],
)
def test_bad_arguments_are_refused(where, words):
    factors, targets, _ = world()
    with pytest.raises(InputError, match=words):
        counts(factors, targets, None, *where)


def test_what_cannot_be_ranked_on_a_device_is_refused():
    factors, targets, _ = world()
    rows = RowScores(lambda users: factors.rows(users, ITEMS))
    how = unsample.Run(device="cpu")
    for scorer, design in ((rows, "exact"), (rows.pairs, "exact"), (factors, "fixed")):
        with pytest.raises(InputError, match="device must be left out unless design='exact'"):
            unsample.evaluate(scorer, ([0], [0]), items=ITEMS, design=design, run=how)
    factors.item_factors[3, 1] = np.nan
    with pytest.raises(ScoreError, match="item factors must be finite"):
        counts(factors, targets, None, "cpu")
