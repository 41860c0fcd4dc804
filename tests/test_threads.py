"""Small products use one BLAS thread; threads and processes of the caller get the same numbers."""

from __future__ import annotations

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  its BLAS is there before threads are counted
from threadpoolctl import threadpool_info, threadpool_limits

import unsample
from unsample._threads import one_thread
from unsample.bounds import _program
from unsample.prior import _posterior

RANKS = np.array([1, 1, 2, 5, 9, 40] * 50)


def threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
def several():
    """Let BLAS have three threads, whatever the environment says."""
    with threadpool_limits(3, user_api="blas"):
        yield


@pytest.mark.parametrize("method", ["auto", "mle"])
def test_fits_and_intervals_use_one_thread(method, monkeypatch, several):
    seen: list[set[int]] = []
    for module, name in ((_posterior, "LogDensity"), (_program, "_linprog")):
        whole = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, f=whole, **k: seen.append(threads()) or f(*a, **k)
        )
    with pytest.warns(unsample.errors.UnsampleWarning):
        result = unsample.estimate(RANKS, items=3706, sampled=99, method=method)
    result["NDCG@10"].interval()
    assert seen
    assert all(each == {1} for each in seen)
    assert threads() == {3}


def test_the_last_to_leave_restores_threads(several):
    inside, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_thread():
            inside.set()
            may_leave.wait(10)

    other = threading.Thread(target=stay)
    with one_thread():
        other.start()
        inside.wait(10)
    assert threads() == {1}
    may_leave.set()
    other.join()
    assert threads() == {3}


def _everything(seed: int) -> tuple[float, ...]:
    """Return all numbers of an estimate with its interval and its bounds."""
    result = unsample.estimate(
        np.roll(RANKS, seed)[: 100 + 50 * (seed % 3)],
        items=2000,
        sampled=99,
        metrics="Recall@50",
        method="mle",
        read=unsample.Read(rng=seed),
    )
    entry = result["Recall@50"]
    return entry.value, *entry.interval(), *entry.bounds()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_threads_and_forks_of_the_caller_get_the_numbers_of_calls_one_after_the_other():
    expected = [_everything(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_everything, range(8))) == expected
    # A library that keeps threads of its own would leave its child waiting for them.
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        assert list(pool.map(_everything, range(2), timeout=60)) == expected[:2]
