"""Promises about a corpus that was cut down by chance, which all queries share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, coverage, keep, simulations
from unsample.adapters import retrieval
from unsample.errors import UnsampleWarning
from unsample.evidence import CutTargets, DrawnPart, Weighed
from unsample.metrics import parse

pytestmark = pytest.mark.validity

DOCUMENTS, QUERIES = 4000, 300
NAMES = ("NDCG@10", "MRR@10", "Recall@100", "AP@100")


def _world(hubs: float) -> tuple[np.ndarray, dict[int, dict[int, int]]]:
    """Return scores and graded relevant documents; some documents are strong for every query."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(QUERIES, DOCUMENTS)) + hubs * rng.normal(size=DOCUMENTS)
    qrels: dict[int, dict[int, int]] = {}
    for query in range(QUERIES):
        size = 1 + int(rng.poisson(2))
        chosen = rng.choice(DOCUMENTS, size, replace=False)
        # From the first places to far below, as P(R) of a power law.
        place = np.exp(rng.uniform(0.0, math.log(DOCUMENTS), size)).astype(int)
        level = np.sort(scores[query])[::-1][place - 1]
        scores[query, chosen] = level + 1e-3 * rng.random(size)
        qrels[query] = {int(each): int(grade) for each, grade
                        in zip(chosen, rng.integers(1, 4, size), strict=True)}  # fmt: skip
    return scores, qrels


def _truth(scores: np.ndarray, qrels: dict[int, dict[int, int]]) -> dict[str, float]:
    task = retrieval.task(np.eye(QUERIES), scores.T, qrels)
    found = unsample.evaluate(
        task.scorer, task.targets, items=DOCUMENTS, relevance=task.relevance,
        metrics=list(NAMES), design="exact", resamples=0,
    )  # fmt: skip
    return {name: found[name].value for name in NAMES}


def _cuts(
    scores: np.ndarray, qrels: dict[int, dict[int, int]], drawn: int, size: int, pooled: bool
) -> Iterator[CutTargets]:
    """Yield corpora that keep the relevant documents, and hard ones, and draw some others."""
    certain = {each for row in qrels.values() for each in row}
    if pooled:
        # What a rough idea of the scores finds.
        rough = scores + np.random.default_rng(2).normal(size=scores.shape)
        certain |= set(np.argsort(-rough, axis=1)[:, :5].ravel().tolist())
    others = np.setdiff1d(np.arange(DOCUMENTS), list(certain))
    for seed in range(size):
        chosen = np.random.default_rng([3, seed]).choice(others, drawn, replace=False)
        kept = np.sort(np.concatenate([list(certain), chosen]))
        yield retrieval.embedded(
            np.eye(QUERIES), scores.T[kept], qrels, documents=DOCUMENTS, document_ids=kept,
            kept=list(certain), rng=seed,
        )  # fmt: skip


def _coverages(hubs: float, drawn: int, size: int, *, pooled: bool = False) -> list[Finding]:
    scores, qrels = _world(hubs)
    truth = _truth(scores, qrels)
    rows: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        for found in _cuts(scores, qrels, drawn, size, pooled):
            result = unsample.estimate(found, metrics=list(NAMES))
            for name in NAMES:
                for population in (True, False):
                    ends = result[name].interval(population=population)
                    rows.setdefault((name, population), []).append(ends)
    where = f"hubs {hubs:g}, {drawn} drawn{', pools' * pooled}"
    return [
        coverage(
            "intervals hold the metrics of the full corpus",
            f"{where}, {name}, {'queries like these' if population else 'these queries'}",
            *np.transpose(ends), truth[name], 0.93,
        )
        for (name, population), ends in rows.items()
    ]  # fmt: skip


def _differences(hubs: float, drawn: int, size: int) -> list[Finding]:
    """Return how often intervals of a difference hold it: other documents are strong in each."""
    scores, qrels = _world(hubs)
    rng = np.random.default_rng(4)
    strong = hubs * rng.normal(size=DOCUMENTS)
    other = 0.5 * scores + strong + rng.normal(size=scores.shape)
    truth = [_truth(each, qrels) for each in (scores, other)]
    rows: dict[str, list[tuple[float, float]]] = {}
    draws = zip(*(_cuts(each, qrels, drawn, size, False) for each in (scores, other)), strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        for found in draws:
            names = NAMES[::2]
            result = unsample.compare(dict(zip("AB", found, strict=True)), metrics=names)
            for name in names:
                pair = result.difference("A", "B", name)
                rows.setdefault(name, []).append((pair.low, pair.high))
    return [
        coverage(
            "intervals hold the difference of two models on the full corpus",
            f"hubs {hubs:g}, {drawn} drawn, {name}",
            *np.transpose(ends), truth[0][name] - truth[1][name], 0.93,
        )
        for name, ends in rows.items()
    ]  # fmt: skip


@pytest.mark.parametrize(("hubs", "drawn"), [(0.0, 400), (1.0, 400), (3.0, 400), (1.0, 1200)])
def test_intervals_hold_the_difference_of_two_models(hubs, drawn, ledger):
    keep(ledger(_differences(hubs, drawn, simulations(40))))


def test_differences_without_the_draw_of_the_documents_fail_the_promise(ledger, monkeypatch):
    monkeypatch.setattr(
        Weighed,
        "difference_part",
        lambda self, *given: DrawnPart(0.0, 0.0, math.inf, self.found.drawn),
    )
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_differences(3.0, 400, simulations(40)), planted="the draw left out"))


@pytest.mark.parametrize("drawn", [100, 400, 1200])
@pytest.mark.parametrize("hubs", [0.0, 1.0, 3.0])
def test_intervals_hold_the_metrics_of_the_full_corpus(hubs, drawn, ledger):
    keep(ledger(_coverages(hubs, drawn, simulations(60))))


def test_intervals_hold_where_hard_documents_are_kept_as_well(ledger):
    keep(ledger(_coverages(1.0, 300, simulations(60), pooled=True)))


def test_shared_documents_taken_for_own_ones_fail_the_promise(ledger, monkeypatch):
    monkeypatch.setattr(
        Weighed, "items_part", lambda self, scores: DrawnPart(0.0, 0.0, math.inf, self.found.drawn)
    )
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_coverages(3.0, 400, simulations(60)), planted="shared taken for own"))


def test_kept_documents_taken_for_drawn_ones_fail_the_promise(ledger, monkeypatch):
    of_lists = CutTargets.of_lists.__func__

    def wrong(cls, *rows, by_chance, grade, **given):
        return of_lists(cls, *rows, by_chance=by_chance | (grade <= 0), grade=grade, **given)

    monkeypatch.setattr(CutTargets, "of_lists", classmethod(wrong))
    with pytest.raises(BrokenPromiseError, match="coverage"):
        keep(ledger(_coverages(0.0, 400, simulations(20)), planted="kept taken for drawn"))


def test_metrics_of_the_cut_corpus_are_far_off():
    scores, qrels = _world(1.0)
    truth = _truth(scores, qrels)
    (found,) = _cuts(scores, qrels, 400, 1, False)
    for name in NAMES:
        metric = parse(name)
        parts = metric.parts(found.queries, found.places, found.relevance)
        printed = float(parts @ metric.weights(found.ranks, DOCUMENTS)) / found.size
        assert printed > 1.15 * truth[name]
