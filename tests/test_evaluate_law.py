"""Designs drawn from the law, and the winner tables made of them."""

from __future__ import annotations

import numpy as np
import pytest

from unsample.answers.evaluation import (
    Adaptive,
    Certified,
    Fixed,
    draw_by_design,
    evaluate_known_ranks,
    merged_sizes,
)
from unsample.lab.datasets import load_ranks
from unsample.lab.experiment import Spec
from unsample.lab.experiment._adaptive import adaptive_winner_rows, compute_adaptive_cell
from unsample.lab.experiment._cells import Ranks, exact_values
from unsample.metrics import parse

# Made-up ranks have shapes that no real ones have; that intervals say so is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")


@pytest.mark.parametrize(
    "design",
    [
        Fixed(20),
        Fixed(20, replacement=False),
        Adaptive(start=5),
        Adaptive(budget=40),
        Adaptive(start=5, cap=60, replacement=True, stop=2),
        Certified(k=10),
    ],
)
def test_the_law_and_an_evaluation_see_the_same(design):
    ranks = np.ceil(500 ** np.random.default_rng(0).random(4000)).astype(np.int64)
    items = np.full(4000, 500)
    met = evaluate_known_ranks(ranks, items=items, design=design, resamples=0)
    fitted = design.fit_to((parse("NDCG@10"),), items - 1)
    rng = np.random.default_rng(1)
    drawn, sampled = draw_by_design(fitted, ranks, items, rng, lot=rng.permutation(4000))
    assert sampled.mean() == pytest.approx(met.compared.mean(), rel=0.1)
    if not design.exact:
        for level in (1, 2):
            share = (met.ranks == level).mean()
            assert (drawn == level).mean() == pytest.approx(share, abs=0.03)


def test_a_budget_is_spread_over_rounds_and_ends_at_the_last_item():
    known = load_ranks("citeulike-a", "ease")
    found = evaluate_known_ranks(
        known.ranks, items=known.items, design="adaptive", budget=300, resamples=0
    )
    # Some targets of rank one are followed to their end, most are left behind by lot.
    first = known.ranks == 1
    complete = found.compared == known.items - 1
    assert 0 < complete[first].mean() < 0.5
    assert (found.ranks[complete] == known.ranks[complete]).all()


def test_sizes_are_merged_where_ranks_are_not_known():
    items = np.array([1000, 1005, 1010, 500, 1000])
    sampled = np.array([10, 10, 999, 499, 999])
    sizes = merged_sizes(items, sampled, replacement=False)
    assert sizes[0] == sizes[1]
    assert sizes[2] >= 1001, "a sample must not seem complete by merging"
    assert sizes[3:].tolist() == [500, 1000], "known ranks keep their catalogue"


def test_winners_are_counted_over_repeats():
    spec = Spec(datasets=("ml-1m",), protocols=("everyday",), repeats=4, ks=(10,), sampled=50)
    cells, exact = {}, {}
    for cell in spec.tables():
        known = load_ranks("ml-1m", cell.recommender)
        ranks = Ranks(known.ranks[::10], known.items[::10])
        cells[cell] = compute_adaptive_cell(spec, cell, ranks)
        exact[cell] = exact_values(ranks, spec.columns)
        values, scored = cells[cell]
        assert values.shape == (4, 3)
        assert 30 < scored <= 50
    rows = adaptive_winner_rows(spec, cells, exact)
    assert {row["metric"] for row in rows} == {"Recall", "NDCG", "AP"}
    assert all(0 <= row["correct"] <= row["repeats"] == 4 for row in rows)
    # The same seed gives the same numbers.
    again = compute_adaptive_cell(spec, cell, ranks)
    assert np.array_equal(again[0], cells[cell][0])
