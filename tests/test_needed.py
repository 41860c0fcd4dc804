"""What would tell two models apart, against evaluations of that size."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import unsample
from unsample.errors import UnsampleWarning
from unsample.evidence import RankCounts
from unsample.lab import load_ranks
from unsample.law import draw_sampled_ranks

METRIC = "NDCG@10"


@pytest.fixture(scope="module")
def full():
    return {name: load_ranks("ml-1m", name, candidates="unseen") for name in ("ease", "itemknn")}


def compared(full, sampled, seed, **options):
    rng = np.random.default_rng(seed)
    ranks = {
        name: draw_sampled_ranks(one.ranks, items=one.items, sampled=sampled, rng=rng)
        for name, one in full.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.compare(
            ranks, items=3706, sampled=sampled, metrics=METRIC, candidates="unseen", **options
        )


@pytest.mark.slow
def test_so_many_items_tell_the_models_apart_about_every_other_time(full):
    few = 70
    needed = [compared(full, few, seed).needed("ease", "itemknn", METRIC) for seed in range(5)]
    sampled = int(np.median([each.sampled or 3706 for each in needed]))
    assert sampled > few
    called = {
        size: np.mean([compared(full, size, seed).winner(METRIC) is not None for seed in range(12)])
        for size in (few, sampled, 4 * sampled)
    }
    assert called[few] < called[4 * sampled]
    assert 0.2 <= called[sampled] <= 0.95
    assert called[4 * sampled] > 0.8


def test_what_is_told_apart_needs_nothing_more(full):
    found = compared(full, 999, 0)
    needed = found.needed("ease", "itemknn", METRIC)
    assert found.winner(METRIC) == "ease"
    assert needed.sampled == needed.now[0] == 999
    assert needed.now[1] == needed.users == 6040
    assert "this sample should tell" in str(needed)


def test_equal_models_need_more_than_there_is(full):
    found = compared({"ease": full["ease"], "twin": full["ease"]}, 99, 3)
    needed = found.needed("ease", "twin", METRIC)
    assert needed.sampled is None or needed.sampled > 500
    if needed.sampled is None and needed.users is None:
        assert "design='guided'" in str(needed)


def test_without_a_prior_nothing_is_said(full):
    assert compared(full, 99, 0, prior=None).needed("ease", "itemknn", METRIC) is None


def test_few_targets_and_printed_numbers_are_not_extrapolated():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        few = unsample.compare({"A": [1, 2], "B": [3, 4]}, items=100, sampled=9, metrics=METRIC)
        printed = {
            name: unsample.published(numbers, items=3706, sampled=99, users=6040)
            for name, numbers in (("A", {"HR@10": "0.730"}), ("B", {"HR@10": "0.824"}))
        }
        claims = unsample.compare(printed, metrics=METRIC)
    assert few.needed("A", "B", METRIC) is None
    assert claims.needed("A", "B", METRIC) is None


def test_samples_of_unlike_sizes_are_not_extrapolated(full):
    counts = {
        name: RankCounts.merge(
            RankCounts.from_ranks(
                draw_sampled_ranks(one.ranks, items=one.items, sampled=size, rng=0),
                items=one.items,
                sampled=size,
            )
            for size in (50, 99)
        )
        for name, one in full.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        found = unsample.compare(counts, metrics=METRIC, candidates="unseen")
    assert found.needed("ease", "itemknn", METRIC) is None


def test_the_command_says_what_is_needed(full, tmp_path, run):
    for seed, (name, one) in enumerate(full.items()):
        ranks = draw_sampled_ranks(one.ranks, items=one.items, sampled=30, rng=seed)[:1000]
        (tmp_path / f"{name}.csv").write_text("rank\n" + "\n".join(map(str, ranks)) + "\n")
    files = [f"{name}={tmp_path / name}.csv" for name in full]
    asked = ("compare", *files, "--items", 3706, "--sampled", 30, "-m", METRIC, "--needed")
    code, out, _ = run(*asked)
    assert code == 0
    assert "needed: " in out
    code, out, _ = run(*asked, "--json")
    assert code == 0
    assert json.loads(out)["needed"][0]["now"] == [30, 1000]
