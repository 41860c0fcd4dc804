"""Small products use one BLAS thread; threads and processes of the caller get the same numbers."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  its BLAS is there before threads are counted
from threadpoolctl import threadpool_info, threadpool_limits

import unsample
from unsample import _threads
from unsample._threads import cached_property, one_thread
from unsample.bounds import _linear_program as _program
from unsample.posterior import _modes

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
    for module, name in ((_modes, "LogDensity"), (_program, "_linprog")):
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


# -- forks ---------------------------------------------------------------------------------------

#: Packages whose matrix products may be large.
NUMERIC = ("posterior", "bounds", "estimators", "questions")
#: Functions that multiply or factor matrices.
PRODUCTS = {"cholesky", "dot", "eigh", "einsum", "inv", "lstsq", "qr", "solve", "svd"}


def in_a_fork(work) -> bool:
    """Return whether the child of a fork does the work, and does not wait for ever."""
    child = get_context("fork").Process(target=work, daemon=True)
    child.start()
    child.join(20)
    done = child.exitcode == 0
    child.kill()
    child.join()
    return done


def enter_and_leave() -> None:
    with one_thread():
        pass


@cache
def products(file: str) -> frozenset[int]:
    """Return the lines of a file of the package that multiply or factor matrices."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(Path(file).read_text())):
        product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if product or (called and node.func.attr in PRODUCTS):
            found.update(range(node.lineno, node.end_lineno + 1))
    return frozenset(found)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_no_matrix_product_takes_several_threads():
    # OpenBLAS locks a product of several threads, and the child of a fork never unlocks it.
    folders = tuple(str(Path(unsample.__file__).parent / name) for name in NUMERIC)
    inside, outside = set(), set()

    def trace(frame, event, _):
        file = frame.f_code.co_filename
        if not file.startswith(folders):
            return None
        if event == "line" and frame.f_lineno in products(file):
            where = f"{file}:{frame.f_lineno}"
            (inside if _threads._limit.inside else outside).add(where)
        return trace

    before, design = sys.gettrace(), {"items": 3706, "sampled": 99}
    sys.settrace(trace)
    try:
        result = unsample.estimate(RANKS, method=["auto", "mle", "bv", "mes"], **design)
        for entry in result.entries:
            entry.interval(0.9)
            entry.interval(population=False)
            entry.bounds(0.9)
        models = {"A": [RANKS, np.roll(RANKS, 1)], "B": [RANKS[::-1], RANKS], "C": RANKS + 1}
        compared = unsample.compare(models, metrics="NDCG@10", **design)
        compared.difference("A", "B", "NDCG@10")
        paper = {"HR@1": 0.18, "HR@10": 0.69}
        unsample.published(paper, users=6040, **design).entries[0].interval(0.9)
        unsample.exact(RANKS, items=300)
    finally:
        sys.settrace(before)
    assert len(inside) > 20
    assert not outside


def test_a_fork_waits_for_a_thread_that_sets_the_limit(monkeypatch):
    setting, may_go_on = threading.Event(), threading.Event()
    set_limit = _threads._limit._set

    def slowly():
        setting.set()
        may_go_on.wait(10)
        return set_limit()

    monkeypatch.setattr(_threads._limit, "_set", slowly)
    other = threading.Thread(target=enter_and_leave)
    other.start()
    setting.wait(10)
    threading.Timer(0.2, may_go_on.set).start()
    assert in_a_fork(enter_and_leave)
    other.join()


def test_the_child_of_a_fork_has_the_threads_of_its_parent_again(several):
    inside, may_leave = threading.Event(), threading.Event()

    def stay():
        with one_thread():
            inside.set()
            may_leave.wait(30)

    def has_three():
        sys.exit(threads() != {3})

    def has_one():
        sys.exit(threads() != {1})

    other = threading.Thread(target=stay)
    _threads._release()  # else OpenBLAS obeys no thread but this one
    other.start()
    inside.wait(10)
    assert threads() == {1}
    assert in_a_fork(has_three)
    with one_thread():  # which the child is in as well
        assert in_a_fork(has_one)
    may_leave.set()
    other.join()
    assert threads() == {3}


def test_no_object_waits_while_another_computes_a_property():
    computing, may_go_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, slow: bool) -> None:
            self.slow = slow

        @cached_property
        def value(self) -> list[bool]:
            if self.slow:
                computing.set()
                may_go_on.wait(30)
            return [self.slow]

    first, second = Slow(True), Slow(False)
    other = threading.Thread(target=lambda: first.value)
    other.start()
    computing.wait(10)
    assert in_a_fork(lambda: second.value)
    assert second.value is second.value
    may_go_on.set()
    other.join()
    assert first.value == [True]


#: A process in which a thread imports something slowly, in the middle of which it forks.
IMPORTING = """
import sys, threading, time, warnings
from multiprocessing import get_context
import numpy as np, unsample._rules
import logging  # after the lock of this package: a fork takes the lock of logging first then

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and not begun.is_set():
            begun.set()
            time.sleep(0.5)
            # As modules do while they are imported.
            logging.getLogger(name)

def work():
    ranks = np.arange(200) % 90 + 1
    str(unsample.estimate({"rank": ranks}, items=300, sampled=99, metrics="NDCG@10"))
    unsample.designs.Fixed(9).simulate(ranks, items=300)

warnings.simplefilter("ignore")
sys.meta_path.insert(0, Slow())
other = threading.Thread(target=work)
other.start()
assert begun.wait(20)
child = get_context("fork").Process(target=work, daemon=True)
child.start()
child.join(10)
print("done" if child.exitcode == 0 else "waits")
child.kill()
other.join()
"""


@pytest.mark.parametrize(
    "module",
    [
        "unsample.questions.estimate.ask",
        "unsample.questions.estimate.view",
        "unsample.designs._simulation",
        "scipy.optimize",
        "threadpoolctl",
        "duckdb",
    ],
)
def test_a_fork_waits_for_a_thread_that_imports(module):
    # The child of a fork has the locks of modules that are half imported, and nobody to open them.
    call = [sys.executable, "-c", IMPORTING, module]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "done\n"


#: Names all that is imported by a first call, at once or later, while a process could fork.
UNGUARDED = """
import sys, warnings
import numpy as np, unsample
from unsample import _rules

class Watch:
    names = set()
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("unsample", "scipy", "duckdb", "threadpoolctl"):
            if not _rules.ONCE._is_owned():
                self.names.add(name)

warnings.simplefilter("ignore")
sys.meta_path.insert(0, Watch())
ranks, scores = np.arange(200) % 90 + 1, np.random.default_rng(0).normal(size=(50, 80))
setting, pairs = {"items": 300, "sampled": 99}, (np.arange(50), np.arange(50))
str(unsample.estimate({"rank": ranks}, method=["auto", "mle", "bv", "mes"], **setting))
str(unsample.compare({"A": ranks, "B": ranks[::-1]}, **setting))
str(unsample.published({"HR@10": 0.5}, users=300, **setting))
str(unsample.plan(items=2000, users=3000, error=0.1))
str(unsample.exact(ranks, items=300))
str(unsample.evaluate(scores, pairs, items=80, metrics="NDCG@10", error=0.3))
unsample.designs.Fixed(9).simulate(ranks, items=300)
print(sorted(Watch.names))
"""


def test_no_process_forks_while_something_is_imported():
    call = [sys.executable, "-c", UNGUARDED]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
