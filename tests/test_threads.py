"""Small products use one BLAS thread, and what the caller had set is restored."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  its BLAS is there before threads are counted
from threadpoolctl import threadpool_info, threadpool_limits

import unsample
from unsample._threads import one_thread
from unsample.estimators._solvers import _log_density, _mixture

RANKS = np.array([1, 1, 2, 5, 9, 40] * 50)


def threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
def several():
    """Let BLAS have three threads, whatever the environment says."""
    with threadpool_limits(3, user_api="blas"):
        yield


@pytest.mark.parametrize("method", ["auto", "mle", "mes", "bv"])
def test_fits_and_intervals_use_one_thread(method, monkeypatch, several):
    seen: list[set[int]] = []
    for module, name in ((_log_density, "LogDensity"), (_mixture, "_certified")):
        whole = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, f=whole, **k: seen.append(threads()) or f(*a, **k)
        )
    from unsample.confidence import _program

    solve = _program._linprog
    monkeypatch.setattr(
        _program, "_linprog", lambda *a, **k: seen.append(threads()) or solve(*a, **k)
    )
    with pytest.warns(unsample.errors.UnsampleWarning):
        result = unsample.estimate(RANKS, items=3706, sampled=99, method=method)
    result["NDCG@10"].interval()
    assert seen
    assert all(each == {1} for each in seen)
    assert threads() == {3}


def test_a_failure_restores_threads(several):
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
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
