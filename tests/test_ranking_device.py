"""Ranks on a device equal those of numpy: in chunks everywhere, fused where there is CUDA."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from unsample.designs import FactorScores, RowScores, _cuda, exact_ranks
from unsample.designs._cuda import PRECISIONS
from unsample.errors import InputError, ScoreError

torch = pytest.importorskip("torch")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
#: (device, engine) pairs; CUDA ones are skipped where there is none.
PLACES = [
    ("cpu", "chunked"),
    pytest.param("cuda", "chunked", marks=needs_cuda),
    pytest.param("cuda", "fused", marks=needs_cuda),
]


def device_ranks(factors, *targets, device="cuda", engine=None, exclude=None, **options):
    """Rank on a device, by a chosen engine."""
    with pytest.MonkeyPatch.context() as patch:
        if engine is not None:
            patch.setattr(_cuda, "_is_fused", lambda *_: engine == "fused")
        return exact_ranks(factors, targets, items=700, exclude=exclude, device=device, **options)


def world(users=150, items=700, dim=20, *, whole=True, seed=0, bias=False):
    """Factors (small whole numbers, which no precision rounds, make many ties) and seen items."""
    rng = np.random.default_rng(seed)
    left, right = (
        rng.integers(-2, 3, size=(n, dim)) if whole else rng.normal(size=(n, dim))
        for n in (users, items)
    )
    more = rng.integers(-3, 4, size=items).astype(np.float32) if bias else None
    factors = FactorScores(left.astype(np.float32), right.astype(np.float32), more)
    targets = rng.integers(users, size=2 * users), rng.integers(items, size=2 * users)
    return factors, targets, csr_array(rng.random((users, items)) < 0.1)


@pytest.mark.parametrize(("device", "engine"), PLACES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("ties", ["optimistic", "pessimistic", "realistic", "random"])
@pytest.mark.parametrize("bias", [False, True])
def test_ranks_equal_those_of_numpy_ties_and_seen_included(device, engine, precision, ties, bias):
    if precision == "tf32" and device == "cpu":
        pytest.skip("tf32 is a number format of CUDA devices")
    factors, targets, seen = world(bias=bias)
    for excluded in (None, seen):
        options = {"exclude": excluded, "ties": ties, "rng": 3}
        expected = exact_ranks(factors, targets, items=700, **options)
        found = device_ranks(
            factors, *targets, device=device, engine=engine, precision=precision, **options
        )
        assert np.array_equal(found.ranks, expected.ranks)
        assert np.array_equal(found.items, expected.items)
        assert np.array_equal(found.ties, expected.ties)
    assert expected.ties.any()


@needs_cuda
@pytest.mark.parametrize(("users", "dim"), [(1, 3), (150, 128), (300, 129)])
def test_any_number_of_users_and_factors_can_be_ranked_on_cuda(users, dim):
    factors, targets, seen = world(users, dim=dim)
    expected = exact_ranks(factors, targets, items=700, exclude=seen)
    found = device_ranks(factors, *targets, exclude=seen)
    assert np.array_equal(found.ranks, expected.ranks)
    assert np.array_equal(found.ties, expected.ties)


@pytest.mark.parametrize(("device", "engine"), PLACES)
@pytest.mark.parametrize(("precision", "off"), [("float32", 1e-3), ("bfloat16", 0.1)])
def test_rounding_moves_ranks_of_real_numbers_but_little(device, engine, precision, off):
    factors, targets, _ = world(whole=False)
    expected = exact_ranks(factors, targets, items=700).ranks
    found = device_ranks(factors, *targets, device=device, engine=engine, precision=precision)
    assert (np.abs(found.ranks - expected) / expected).mean() < off


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused():
    factors, targets, _ = world()
    with pytest.raises(InputError, match="torch finds no CUDA device"):
        device_ranks(factors, *targets)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "float16"}, "precision must be one of"),
        ({"precision": "tf32"}, "only CUDA devices have"),
        ({"device": "abacus"}, "device must be one of torch"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    factors, targets, _ = world()
    with pytest.raises(InputError, match=words):
        device_ranks(factors, *targets, **{"device": "cpu"} | options)


def test_factors_that_diverged_are_refused():
    factors, targets, _ = world()
    factors.item_factors[3, 1] = np.nan
    with pytest.raises(ScoreError, match="item factors must be finite"):
        device_ranks(factors, *targets, device="cpu")


def test_a_function_cannot_be_sent_to_a_device():
    factors, targets, _ = world()
    rows = RowScores(lambda users: factors.rows(users, 700))
    with pytest.raises(InputError, match="device must be left out unless factors are ranked"):
        device_ranks(rows, *targets, device="cpu")


# -- what is done with the counts of the kernels ---------------------------------------------------


@pytest.fixture
def kernels(monkeypatch):
    """Let a processor do what the kernels do on CUDA, some targets at a time."""

    def own_scores(users, items, targets, launch):
        return (users.float() * items[targets].float()).sum(1)

    def count_above(users, items, own, launch):
        scores = users.float() @ items.float().T
        return (scores > own[:, None]).sum(1), (scores >= own[:, None]).sum(1)

    def count_excluded(users, items, own, starts, excluded, launch):
        row = torch.repeat_interleave(torch.arange(len(users)), starts.diff())
        scores = (users[row].float() * items[excluded].float()).sum(1)
        return tuple(
            torch.bincount(row[which], minlength=len(users))
            for which in (scores > own[row], scores >= own[row])
        )

    for kernel in (own_scores, count_above, count_excluded):
        monkeypatch.setattr(_cuda, kernel.__name__, kernel)
    monkeypatch.setattr(_cuda, "_is_fused", lambda *_: True)
    monkeypatch.setattr(_cuda, "_TARGETS", 64)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("dim", [3, 16, 20])
@pytest.mark.usefixtures("kernels")
def test_counts_of_the_kernels_become_ranks(precision, dim):
    factors, targets, seen = world(dim=dim)
    for excluded in (None, seen):
        expected = exact_ranks(factors, targets, items=700, exclude=excluded, ties="optimistic")
        found = device_ranks(
            factors,
            *targets,
            device="cpu",
            precision=precision,
            exclude=excluded,
            ties="optimistic",
        )
        assert np.array_equal(found.ranks, expected.ranks)
        assert np.array_equal(found.ties, expected.ties)
