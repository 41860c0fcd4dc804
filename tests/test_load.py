"""Load in small: calls at once, calls in a row, many models; ``benchmarks/load.py`` has it all."""

from __future__ import annotations

import gc
import itertools
import json
import sys
import time
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import unsample
from unsample.answers import Comparison, Difference
from unsample.answers._comparison import Standing
from unsample.answers._duels import Model, _count_wins, _Entrant
from unsample.answers._verdicts import corrected
from unsample.errors import InputError, UnresolvedWarning
from unsample.evidence import RankCounts
from unsample.lab.datasets import load_ranks
from unsample.law import Law
from unsample.pages import as_html
from unsample.tables import read_counts, read_targets

ITEMS, SAMPLED, METRIC = 2000, 99, "Recall@50"
DESIGN = {"items": ITEMS, "sampled": SAMPLED}


def draw(seed, users=200, steepness=2.5):
    rng = np.random.default_rng(seed)
    full = np.ceil(ITEMS * rng.beta(0.4, steepness, users)).astype(int).clip(1, ITEMS)
    return Law(ITEMS, SAMPLED).draw(full, rng=rng)


def everything(seed):
    """Return all numbers of an estimate with its interval and its bounds."""
    result = unsample.estimate(
        draw(seed % 4), **DESIGN, metrics=METRIC, method="mle", resamples=5, rng=seed
    )
    entry = result[METRIC]
    return entry.value, entry.standard_error, *entry.interval(), *entry.bounds()


# -- calls at once -------------------------------------------------------------------------------


def test_threads_get_the_numbers_of_calls_one_after_the_other():
    seeds = range(12)
    expected = [everything(seed) for seed in seeds]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(everything, seeds)) == expected


def test_one_result_may_be_asked_by_many_threads():
    result = unsample.estimate(draw(0), **DESIGN, metrics=METRIC, method="mle", resamples=5)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: result[METRIC].interval(), range(12)))
    assert set(found) == {result[METRIC].interval()}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_estimates_after_its_parent_did():
    # A library that keeps threads of its own would leave its child waiting for them.
    expected = everything(1)
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        assert pool.submit(everything, 1).result(timeout=60) == expected


@pytest.mark.parametrize("call", ["compare", "evaluate"])
def test_no_call_touches_the_warning_filters_that_threads_share(call, monkeypatch):
    # Filters belong to the process: a thread that changes them for a while changes them for all.
    def refuse(*_, **__):
        pytest.fail("the filters of all threads were about to be changed")

    monkeypatch.setattr(warnings, "catch_warnings", refuse)
    if call == "compare":
        two = {"a": draw(0), "b": draw(1)}
        unsample.compare(two, **DESIGN, metrics=METRIC, method="mle")
        return
    left, right = np.random.default_rng(0).normal(size=(2, 60, 4))
    targets = (np.arange(60), np.arange(60))
    options = {"metrics": "Recall@10", "method": "mle", "resamples": 5}
    unsample.evaluate((left, right), targets, items=60, design="fixed", budget=1200, **options)


def test_warnings_of_one_thread_reach_its_caller_while_others_compare():
    two = {"a": draw(0), "b": draw(1)}
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        work = [
            pool.submit(unsample.compare, two, **DESIGN, metrics="Recall@2", method="mle")
            if place % 2
            else pool.submit(
                unsample.estimate, draw(0), **DESIGN, metrics="Recall@2", method="mle", resamples=0
            )
            for place in range(12)
        ]
        for one in work:
            one.result()
    # Six estimates, each with its own; comparisons put theirs into the result.
    assert [note.category for note in caught] == [UnresolvedWarning] * 6


def test_what_a_caller_does_to_bundled_ranks_stays_with_the_caller():
    first = load_ranks("ml-1m", "ease")
    first.ranks[:] = 1
    first.provenance["recommenders"]["ease"].clear()
    second = load_ranks("ml-1m", "ease")
    assert second.ranks.max() > 1
    assert second.provenance["recommenders"]["ease"]


# -- calls in a row ------------------------------------------------------------------------------

CALLS = {
    "estimate": (5, everything),
    "count": (
        40,
        lambda seed: (
            RankCounts.from_ranks(draw(seed % 4), **DESIGN)
            + RankCounts.from_ranks(draw(0), **DESIGN)
        ),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_nothing_behind(name):
    count, call = CALLS[name]
    # A result is a hundred kilobytes.
    assert bytes_left_by(call, count) < 2_000


def test_a_planted_leak_is_found():
    kept = []
    left = bytes_left_by(lambda seed: kept.append(np.full(1000, seed)), 20)
    assert left >= 8_000


def bytes_left_by(call, count, rounds=4):
    """Return how many bytes a call leaves behind, on average over the round that left the least.

    A leak grows in every round. Caches of the interpreter and of libraries grow in some of them,
    for dozens of calls.
    """

    def held_after(times):
        for seed in range(times):
            call(seed)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        held = [held_after(2), *(held_after(count) for _ in range(rounds))]
    finally:
        tracemalloc.stop()
    return min(np.diff(held)) / count


# -- many rows -----------------------------------------------------------------------------------


# So many targets refute any P(R) that is not the very one: they are copies of two hundred.
@pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")
def test_a_billion_targets_weigh_no_more_than_a_thousand():
    ranks = draw(0)
    many, few = (
        RankCounts.from_ranks(ranks, **DESIGN, count=np.full(len(ranks), times))
        for times in (5 * 10**6, 5)
    )
    assert many.total == 10**9
    assert len(many.count) == len(few.count)
    found = [
        unsample.estimate(one, metrics=METRIC, method="mle", resamples=0)[METRIC].value
        for one in (many, few)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-6)


# -- many models ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd():
    """Exact evaluations of 500 models on the same users: cheap, and told apart at both ends."""
    users, items = 150, 120
    rng = np.random.default_rng(0)
    base = np.ceil(items * rng.beta(0.4, 2.5, users)).astype(int).clip(1, items)
    return {
        f"m{place:03d}": RankCounts.from_ranks(
            np.ceil(base * (1 + place / 500)).clip(1, items).astype(int),
            items=items,
            sampled=items - 1,
            replacement=False,
        )
        for place in range(500)
    }


@pytest.fixture(scope="module")
def crowded(crowd):
    return unsample.compare(crowd, metrics="Recall@10", method="naive")


def test_very_many_models_are_compared_with_the_best(crowded):
    assert crowded.against == "best"
    assert any("124,750 pairs" in text for text in crowded.warnings)
    rows = crowded.standings
    assert len(rows) == 500
    assert [one.value for one in rows] == sorted((one.value for one in rows), reverse=True)
    assert len(crowded.differences) == 499
    assert {one.a for one in crowded.differences} == {rows[0].model}
    assert sum(one.chance for one in rows) == pytest.approx(1.0)
    assert all(one.least == 0.0 for one in rows[1:])


def test_what_people_read_of_very_many_models_is_short_and_json_is_whole(crowded):
    text = str(crowded)
    assert len(text.splitlines()) < 130
    assert "the highest estimates of 500 models" in text
    assert max(len(line) for line in crowded.sentences()) < 1000
    assert len(json.loads(crowded.to_json())["standings"]) == 500
    assert crowded._repr_html_().count("<tr>") < 130


def test_a_page_of_very_many_models_is_small(crowded):
    pytest.importorskip("jinja2")
    assert len(as_html(crowded)) < 2_000_000


def test_a_baseline_is_compared_with_everyone(crowd):
    few = dict(itertools.islice(crowd.items(), 0, 500, 50))
    result = unsample.compare(few, metrics="Recall@10", method="naive", against="m250")
    assert {one.a for one in result.differences} == {"m250"}
    assert len(result.differences) == 9
    (sentence,) = result.sentences()
    assert sentence.startswith("Of 9 models, ")
    assert "than m250" in sentence
    assert result.winner("Recall@10") is None
    with pytest.raises(KeyError, match="taken against 'm250'"):
        result.difference("m000", "m050", "Recall@10")


def test_fewer_pairs_give_the_same_differences(crowd):
    few = dict(itertools.islice(crowd.items(), 0, 500, 100))
    options = {"metrics": "Recall@10", "method": "naive", "correction": "none"}
    whole = unsample.compare(few, **options)
    for against in ("best", "m200"):
        for one in unsample.compare(few, **options, against=against).differences:
            other = whole.difference(one.a, one.b, "Recall@10")
            assert (one.a, one.b, one.winner) == (other.a, other.b, other.winner)
            for name, value in vars(one).items():
                if isinstance(value, float):
                    assert value == pytest.approx(getattr(other, name), abs=1e-12)


@pytest.mark.parametrize(
    ("names", "against", "message"),
    [
        (("a", "b"), "c", "'all', 'best' or the name of a model, got 'c'"),
        (("model", "b"), "modle", "did you mean model"),
        (("best", "b"), "best", "rename the model"),
    ],
)
def test_pairs_that_cannot_be_meant_are_refused(names, against, message):
    models = {name: [1, 2, 3] for name in names}
    with pytest.raises(InputError, match=message):
        unsample.compare(models, **DESIGN, against=against)


def test_all_pairs_of_thousands_of_models_are_refused_at_once():
    models = {str(place): [1, 2] for place in range(10_000)}
    start = time.perf_counter()
    with pytest.raises(InputError, match="got 'all' for 10,000, which have 49,995,000 pairs"):
        unsample.compare(models, **DESIGN, against="all")
    assert time.perf_counter() - start < 5


def test_the_data_choosing_the_best_costs_the_correction_of_all_pairs(crowd):
    few = dict(itertools.islice(crowd.items(), 0, 500, 100))
    options = {"metrics": "Recall@10", "method": "naive", "correction": "bonferroni"}
    for against, family in (("all", 10), ("best", 10), ("m000", 4)):
        raw = unsample.compare(few, **{**options, "correction": "none"}, against=against)
        found = unsample.compare(few, **options, against=against)
        for before, after in zip(raw.differences, found.differences, strict=True):
            assert after.p_value == pytest.approx(min(1.0, family * before.p_value))


def test_holm_over_a_part_of_a_family_never_beats_holm_over_the_whole():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.random(12) ** 4
        whole = [_difference(place, value) for place, value in enumerate(p)]
        chosen = sorted(rng.choice(12, size=5, replace=False))
        all_of_them = corrected(whole, "holm", 0.95, family=12)
        part = corrected([whole[place] for place in chosen], "holm", 0.95, family=12)
        bonferroni = corrected([whole[place] for place in chosen], "bonferroni", 0.95, family=12)
        for place, one, strict in zip(chosen, part, bonferroni, strict=True):
            assert one.p_value <= strict.p_value
            # A verdict of the part may rest on fewer steps, never on a smaller family.
            assert one.p_value >= 8 * p[place] - 1e-12 or one.p_value == 1.0
        assert all(one.p_value >= p[place] for place, one in enumerate(all_of_them))


def _difference(place, p_value):
    return Difference("Recall@1", "a", str(place), 0.1, 0.0, 0.2, 1.0, 1.0, 1.0, p_value, None)


def test_chances_of_the_best_are_the_same_from_models_and_from_targets():
    # With fewer targets than models the correlation is never written out.
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(9, 6))
    raw[3] = 0.0  # a model whose targets are all alike
    centred = raw - raw.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    padded = np.hstack([unit, np.zeros((9, 6))])
    model = Model("m", RankCounts.from_ranks([1], **DESIGN))
    values, errors = rng.normal(0, 0.1, 9), rng.uniform(0.05, 0.2, 9)
    wins = [
        np.array(
            _count_wins(
                [
                    _Entrant(model, value, error, row)
                    for value, error, row in zip(values, errors, rows, strict=True)
                ],
                np.random.default_rng(5),
            )
        )
        for rows in (unit, padded)
    ]
    assert wins[0].sum() == wins[1].sum() == 20_000
    assert np.abs(wins[0] - wins[1]).max() < 5 * np.sqrt(20_000 / 2)


def test_an_excerpt_of_few_models_is_the_comparison_itself(crowd):
    few = dict(itertools.islice(crowd.items(), 3))
    result = unsample.compare(few, metrics="Recall@10", method="naive")
    assert result.excerpt() is result
    assert isinstance(result, Comparison)
    assert all(isinstance(one, Standing) for one in result.standings)


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 5])
@pytest.mark.parametrize("read", [read_counts, read_targets])
def test_a_row_with_a_user_takes_little_memory(tmp_path, read, each):
    peaks = []
    for rows in (100_000, 200_000):
        users = np.random.default_rng(0).permutation(rows) // each
        lines = (f"user{user:08d},{1 + row % 100}\n" for row, user in enumerate(users.tolist()))
        path = tmp_path / f"{rows}.csv"
        path.write_text("user,rank\n" + "".join(lines), encoding="utf-8")
        tracemalloc.start()
        try:
            assert read(path, items=10_000, sampled=99)[""] is not None
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 100_000 < 64
