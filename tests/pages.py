"""One small result of every kind, with names that try to break out of its page."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import unsample
from unsample.errors import UnsampleWarning
from unsample.report import as_html

ITEMS, SAMPLED = 400, 30
METRICS = ("Recall@5", "Recall@50", "NDCG@50")
EVIL = "</script><script>alert('x')</script>"


@functools.cache
def full_ranks(shape: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(11)
    return np.ceil(ITEMS * rng.beta(shape, 2.0, size=1500)).astype(int).clip(1, ITEMS)


def sampled_ranks(shape: float = 0.5) -> np.ndarray:
    return unsample.sampling.SamplingModel(ITEMS, SAMPLED).draw(full_ranks(shape), rng=5)


def _estimate(shape: float = 0.5, **options: Any) -> unsample.Estimates:
    settings = {"items": ITEMS, "sampled": SAMPLED, "metrics": METRICS}
    return unsample.estimate(sampled_ranks(shape), **settings | options)


def _comparison() -> unsample.Comparison:
    models = {"good": sampled_ranks(0.3), "less good": sampled_ranks(1.0), EVIL: sampled_ranks()}
    return unsample.compare(models, items=ITEMS, sampled=SAMPLED, metrics=["Recall@100", "NDCG@50"])


def _across() -> unsample.Across:
    models = {"good": sampled_ranks(0.3), EVIL: sampled_ranks()}
    other = {"good": sampled_ranks(0.4)[:900], EVIL: sampled_ranks()[:900]}
    sets = {"one": models, "two": other, EVIL: {n: each[:500] for n, each in models.items()}}
    return unsample.compare(
        sets, across="dataset", items=ITEMS, sampled=SAMPLED, metrics=["Recall@100", "NDCG@50"]
    )


def _published() -> unsample.Published:
    return unsample.published(
        {"HR@1": "0.18", "HR@10": "0.69"},
        items=ITEMS,
        sampled=SAMPLED,
        users=1500,
        metrics=METRICS,
    )


def _leaderboard() -> unsample.Leaderboard:
    table = {"A": {"HR@1": "0.18", "HR@10": "0.69"}, EVIL: {"HR@1": "0.12", "HR@10": "0.55"}}
    return unsample.published(
        table, items=ITEMS, sampled=SAMPLED, users=1500, metrics=["Recall@100", "NDCG@50"]
    )


def _evaluated() -> Any:
    users, catalogue = np.random.default_rng(0).normal(size=(2, 300, 8))
    targets = np.arange(300), np.arange(300)
    return unsample.evaluate(
        (users, catalogue), targets, items=300, design="certified", metrics="NDCG@10"
    )


def _guided(several: bool = False) -> Any:
    rng = np.random.default_rng(0)
    users, catalogue = rng.normal(size=(200, 6)), rng.normal(size=(120, 6))
    targets = np.arange(200), rng.integers(120, size=200)
    models = {"A": (users, catalogue), "B": (users + rng.normal(size=users.shape), catalogue)}
    return unsample.evaluate(
        models if several else models["A"],
        targets,
        items=120,
        design="guided",
        metrics=METRICS,
        budget=32_000 if several else 16_000,
    )


def _audited() -> unsample.Audit:
    rng = np.random.default_rng(0)
    return unsample.audit(rng.integers(ITEMS // 2, size=(200, SAMPLED)), items=ITEMS)


_MAKERS: dict[str, Callable[[], Any]] = {
    "estimate": lambda: _estimate(method="auto"),
    "methods": lambda: _estimate(method=["naive", "mle", "bv(gamma=0.01)"], protocol="unseen"),
    "exact": lambda: unsample.exact(full_ranks(), items=ITEMS, metrics=METRICS),
    "groups": lambda: {EVIL: _estimate(method="mle"), "b": _estimate(1.0, method="mle")},
    "compare": _comparison,
    "across": _across,
    "published": _published,
    "leaderboard": _leaderboard,
    "evaluate": _evaluated,
    "guided": _guided,
    "together": lambda: _guided(several=True),
    "plan": lambda: unsample.plan(items=ITEMS, users=500),
    "audit": _audited,
}
KINDS = tuple(_MAKERS)


@functools.cache
def result(kind: str) -> Any:
    """Return the result of a kind, computed once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return _MAKERS[kind]()


@functools.cache
def page(kind: str) -> str:
    """Return its page, made once."""
    return as_html(result(kind))
