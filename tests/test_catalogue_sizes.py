"""Sizes of catalogues: few are kept, many are rounded to compute with; true ones are printed."""

import json
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unsample
from tests.readers import sql
from unsample.counts import FEW_SIZES, ModelCounts, RankCounts, Targets, size_on_grid
from unsample.errors import DesignError, InputError, UnsampleWarning

METRICS = ["NDCG@10", "Recall@50", "AUC"]
ITEMS = {"items": "items"}
MANY = np.arange(3700, 3700 + FEW_SIZES + 1)


def drawn(users, seed=0):
    rng = np.random.default_rng(seed)
    full = np.minimum(np.ceil(rng.pareto(0.4, users)), 3700)
    return 1 + rng.binomial(99, (full - 1) / 3699)


def told(result):
    """Return every number that estimates have."""
    return {
        "rows": result.rows(),
        "bounds": [entry.bounds(0.99) for entry in result.entries],
        "own": [entry.interval(population=False) for entry in result.entries],
    }


def replace_items(counts, items):
    """Return the counts with another size of the catalogue."""
    sizes = np.full(len(counts), items)
    return replace(counts, items=sizes, smallest=sizes, largest=sizes)


def counted(rows, **options):
    """Return the table of counts that the printed query makes."""
    query = sql(columns=ITEMS, table="rows", sampled=99, **options)
    return duckdb.sql(query).pl()


def sources(rows, folder):
    """Return the same ranks, each with its catalogue, behind every door; those that know 99."""
    ranks, items = rows["rank"].to_numpy(), rows["items"].to_numpy()
    counts = RankCounts.from_ranks(ranks, items=items, sampled=99)
    rows.write_csv(folder / "ranks.csv")
    counts.save(folder / "counts.npz")
    parts = [slice(start, start + 7) for start in range(0, len(rows), 7)]
    asking = {"frame": rows, "no users": rows.drop("user"), "file": folder / "ranks.csv"}
    knowing = {
        "counts": counts,
        "counted": counted(rows),
        "counted users": counted(rows, pair=True),
        "counted in parts": pl.concat([counted(rows[part], pair=True) for part in parts]),
        "saved": folder / "counts.npz",
        "merged": RankCounts.merge(
            RankCounts.from_ranks(ranks[part], items=items[part], sampled=99) for part in parts
        ),
        "merged in steps": RankCounts.merge(
            RankCounts.merge([RankCounts.from_ranks(ranks[part], items=items[part], sampled=99)])
            for part in parts
        ),
    }
    return asking, knowing


def through_every_door(rows, folder):
    asking, knowing = sources(rows, folder)
    arrays = {"items": rows["items"].to_numpy(), "sampled": 99}
    yield "arrays", unsample.estimate(rows["rank"].to_numpy(), **arrays, metrics=METRICS)
    for name, source in asking.items():
        yield name, unsample.estimate(source, sampled=99, metrics=METRICS)
    for name, source in knowing.items():
        yield name, unsample.estimate(source, metrics=METRICS)


# -- few sizes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("items", [3706, 26744])
def test_a_column_of_one_size_gives_what_the_number_gives(tmp_path, items):
    rows = pl.DataFrame({"user": range(300), "rank": drawn(300)}).with_columns(items=pl.lit(items))
    truth = unsample.estimate(rows["rank"].to_numpy(), items=items, sampled=99, metrics=METRICS)
    for name, found in through_every_door(rows, tmp_path):
        assert told(found) == told(truth), name
        assert found.to_dict() == truth.to_dict(), name
        assert found.to_dict()["items"] == items, name
        assert f"99 of {items:,} items" in str(found), name
        assert f"items={items}," in repr(found.counts), name


def test_scored_lists_of_one_size_give_what_the_number_gives():
    columns = {
        "user": np.repeat(np.arange(120), 20),
        "score": np.random.default_rng(3).normal(size=2400),
        "target": np.tile(np.arange(20) == 0, 120),
    }
    rows = pl.DataFrame(columns)
    found = unsample.estimate(rows.with_columns(items=3706), metrics=METRICS)
    truth = unsample.estimate(rows, items=3706, metrics=METRICS)
    assert told(found) == told(truth)
    assert found.to_dict() == truth.to_dict()


def test_models_of_one_size_compare_as_with_the_number():
    ranks = {"A": drawn(300, 1), "B": drawn(300, 2)}
    parts = [
        pl.DataFrame({"model": name, "user": range(300), "rank": each})
        for name, each in ranks.items()
    ]
    table = pl.concat(parts)
    rows = table.with_columns(items=3706)
    truth = unsample.compare(table, items=3706, sampled=99, metrics=METRICS)
    found = {
        "table": unsample.compare(rows, sampled=99, metrics=METRICS),
        "arrays": unsample.compare(ranks, items=np.full(300, 3706), sampled=99, metrics=METRICS),
        "counted": unsample.compare(counted(rows, by="model", pair=True), metrics=METRICS),
    }
    for name, result in found.items():
        assert result.rows() == truth.rows(), name
        assert "99 of 3,706 items" in str(result), name


@pytest.mark.filterwarnings("ignore:the models' users do not match")
def test_models_of_two_sizes_are_said_to_have_both():
    """A model may lack the user whose catalogue is the largest."""
    counts = {
        "A": RankCounts.from_ranks(drawn(300, 1), items=3718, sampled=99),
        "B": RankCounts.from_ranks(drawn(300, 2), items=3706, sampled=100),
    }
    found = unsample.compare(counts, metrics=METRICS)
    assert "99 to 100 of 3,706 to 3,718 items sampled" in str(found)
    # However near, they may lie on both sides of a step of the grid.
    edge = next(size for size in range(3700, 3800) if size_on_grid(size) != size_on_grid(size + 1))
    near = {name: replace_items(each, edge + at) for at, (name, each) in enumerate(counts.items())}
    assert f"of {edge:,} to {edge + 1:,} items" in str(unsample.compare(near, metrics=METRICS))
    far = {"A": replace_items(counts["A"], 3800), "B": counts["B"]}
    with pytest.raises(DesignError, match=r"ranked in one catalogue .* got A 3,800 and B 3,706; "):
        unsample.compare(far, metrics=METRICS)


def test_the_command_prints_the_size_of_a_column(run, tmp_path):
    rows = pl.DataFrame({"rank": drawn(300), "items": [26744] * 300})
    rows.write_csv(tmp_path / "ranks.csv")
    code, out, _ = run("estimate", tmp_path / "ranks.csv", "--sampled", 99)
    assert code == 0
    assert "99 of 26,744 items" in out
    code, out, _ = run("estimate", tmp_path / "ranks.csv", "--sampled", 99, "--json")
    assert json.loads(out)["items"] == 26744


# -- many sizes ----------------------------------------------------------------------------------


def test_many_sizes_are_rounded_and_the_true_ones_printed(tmp_path):
    rng = np.random.default_rng(4)
    items = rng.permutation(np.resize(MANY, 400))
    rows = pl.DataFrame({"user": range(400), "rank": drawn(400), "items": items})
    doors = dict(through_every_door(rows, tmp_path))
    first, grid = doors["arrays"], sorted({*size_on_grid(MANY).tolist()})
    for name, found in doors.items():
        assert found.counts == first.counts, name
        assert sorted({*found.counts.items.tolist()}) == grid, name
        assert told(found) == told(first), name
        assert found.to_dict()["items"] == [3700, int(MANY[-1])], name
        assert f"99 of 3,700 to {MANY[-1]:,} items" in str(found), name
        assert f"items=3700..{MANY[-1]}," in repr(found.counts), name


def test_few_sizes_stay_as_they_are():
    sizes = MANY[:-1]
    counts = RankCounts.from_ranks(np.ones(FEW_SIZES, int), items=sizes, sampled=9)
    assert counts.items.tolist() == sizes.tolist()
    assert not counts.many_sizes


def test_many_sizes_of_which_all_was_compared_stay_as_they_are():
    ranks = np.ones(len(MANY), int)
    full = RankCounts.from_ranks(ranks, items=MANY, sampled=MANY - 1, replacement=False)
    assert full.items.tolist() == MANY.tolist()


def test_no_rounded_size_seems_to_be_all_that_was_compared():
    sizes = np.arange(3705, 3705 + FEW_SIZES + 1)
    counts = RankCounts.from_ranks(
        np.ones(len(sizes), int), items=sizes, sampled=3703, replacement=False
    )
    assert not counts.full.any()
    assert (counts.items >= 3705).all()
    assert counts.catalogues == (3705, int(sizes[-1]))


def test_a_pilot_of_many_sizes_plans_for_the_true_largest():
    found = unsample.estimate(drawn(400), items=np.resize(MANY, 400), sampled=99, metrics=METRICS)
    pilot, largest = found.distribution(), int(MANY[-1])
    assert pilot.items == size_on_grid(largest) != largest
    planned = unsample.plan(items=largest, users=400, pilot=pilot, budget=100_000)
    assert planned.value == pytest.approx(pilot.expect("NDCG@10"), rel=1e-9)
    with pytest.raises(InputError, match="pilot must rank among items = 3800"):
        unsample.plan(items=3800, users=400, pilot=pilot, budget=100_000)


def test_a_size_that_only_the_grid_has_is_not_said_to_be_cut_by_k():
    items = np.resize(MANY, 200)
    largest = int(MANY[-1])
    with pytest.warns(UnsampleWarning, match=f"at most items = {largest:,}"):
        unsample.estimate(drawn(200), items=items, sampled=99, metrics=f"Recall@{largest + 1}")


# -- parts ---------------------------------------------------------------------------------------

_SIZES = st.lists(st.integers(995, 1100), min_size=1, max_size=80)


@settings(max_examples=60, deadline=None)
@given(_SIZES, st.integers(1, 6), st.integers(0, 9), st.booleans())
def test_parts_add_up_whichever_of_them_have_many_sizes(sizes, parts, seed, replacement):
    rng = np.random.default_rng(seed)
    size = len(sizes)
    users, part = rng.integers(0, size, size), rng.integers(0, parts, size)
    part = part[users]  # a user is in one part
    ranks = {name: rng.integers(1, 900, size) for name in "AB"}
    # A model of other sizes, which may be few where those of the first are many.
    items = {"A": np.array(sizes), "B": np.minimum(sizes, 1005)}

    def counts_of(rows):
        how = {"sampled": 899, "replacement": replacement}
        return ModelCounts.of_targets(
            {
                name: Targets(ranks[name][rows], items[name][rows], users=users[rows], **how)
                for name in "AB"
            }
        )

    whole = counts_of(np.ones(size, dtype=bool))
    merged = ModelCounts.merge(counts_of(part == each) for each in np.unique(part))
    for name in "AB":
        assert merged[name] == whole[name]
        assert merged[name].pairs() == whole[name].pairs()
        assert merged[name].catalogues == (min(items[name]), max(items[name]))
    assert merged.between["A", "B"] == whole.between["A", "B"]


def test_saved_counts_keep_the_true_sizes(tmp_path):
    counts = RankCounts.from_ranks(drawn(len(MANY)), items=MANY, sampled=99)
    counts.save(tmp_path / "counts.npz")
    again = RankCounts.load(tmp_path / "counts.npz")
    assert again == counts
    assert again.catalogues == (3700, int(MANY[-1]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"smallest": [2000]}, "smallest and largest must be sizes that items stands for"),
        ({"largest": [3750]}, "smallest and largest must be sizes that items stands for"),
        ({"smallest": [3706], "largest": [3705]}, "smallest must not exceed largest"),
    ],
)
def test_true_sizes_that_a_cell_cannot_have_are_refused(changes, words):
    (items,) = size_on_grid([3706])
    counts = RankCounts.from_ranks([1], items=int(items), sampled=9)
    with pytest.raises(DesignError, match=words):
        replace(counts, **{name: np.array(values) for name, values in changes.items()})


def test_comparisons_of_many_sizes_pair_users_alike():
    rng = np.random.default_rng(6)
    items = rng.permutation(np.resize(MANY, 400))
    ranks = {"A": drawn(400, 1), "B": drawn(400, 2)}
    parts = [
        pl.DataFrame({"model": name, "user": range(400), "rank": each, "items": items})
        for name, each in ranks.items()
    ]
    rows = pl.concat(parts)
    table = unsample.compare(rows, sampled=99, metrics=METRICS)
    arrays = unsample.compare(ranks, items=items, sampled=99, metrics=METRICS)
    again = unsample.compare(counted(rows, by="model", pair=True), metrics=METRICS)
    assert table.rows() == arrays.rows() == again.rows()
    assert f"99 of 3,700 to {MANY[-1]:,} items" in str(table)


@pytest.mark.filterwarnings("ignore:1 user is few")
def test_each_model_of_a_table_keeps_its_own_size():
    sizes = MANY.tolist()
    rows = pl.DataFrame(
        {"model": [f"of {size}" for size in sizes], "rank": [1] * len(sizes), "items": sizes}
    )
    with_users = rows.with_columns(user=pl.lit("ann"))
    for table in (rows, with_users):
        found = unsample.estimate(table, sampled=9, by="model", metrics="Recall@10")
        assert [each.to_dict()["items"] for each in found.values()] == sizes
        assert [int(each.counts.items[0]) for each in found.values()] == sizes
