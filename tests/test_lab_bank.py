"""The bank of ranks: what it holds, adding to it, and leaving data sets out of the prior."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from unsample.errors import DatasetError, FileError
from unsample.estimators.prior import shipped
from unsample.lab import load_ranks
from unsample.lab.bank import Bank, RankSet, load_bank, read_folder
from unsample.lab.bank._trials import School, run_trials, spreads, standard_errors
from unsample.metrics import parse_all

METRICS = parse_all(["NDCG@1", "NDCG@10", "Recall@50"])


def test_the_bank_holds_what_it_should():
    bank = load_bank()
    assert len((files("unsample.lab.bank") / "bank.npz").read_bytes()) < 3_000_000
    assert len({each.dataset for each in bank}) >= 32
    assert {each.kind for each in bank} == {"unseen", "all", "repeats", "graph"}
    assert {each.dataset for each in bank if each.partial} == {"pinterest-20", "yelp"}
    assert len({each.family for each in bank if "yelp" in each.dataset}) == 1
    for each in bank:
        assert len(each.counts) == len(each.grid)
        assert each.targets > 0


@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_histograms_have_the_metrics_of_the_ranks(candidates):
    one = load_bank().select(dataset="ml-1m", model="ease", candidates=candidates).sets[0]
    ranks = load_ranks("ml-1m", "ease", candidates=candidates).ranks
    exact = [metric.weights(ranks, one.items).mean() for metric in METRICS]
    assert one.exact(METRICS) == pytest.approx(exact)
    with pytest.raises(DatasetError, match="fields must be"):
        load_bank().select(name="ml-1m")


def write_folder(folder):
    rng = np.random.default_rng(0)
    folder.mkdir()
    ranks = rng.integers(1, 500, size=(2, 400))
    repeat = np.arange(400) < 100
    np.savez(
        folder / "shop.npz",
        items=500,
        n_seen=np.zeros(400, dtype=int),
        repeat=repeat,
        knn_1=ranks[0],
        knn_0=ranks[1],
    )
    (folder / "about.toml").write_text('[shop]\ngroup = "shops"\nlicence = "ours"\n')
    return ranks, repeat


def test_a_folder_of_full_ranks_is_added(tmp_path, lab):
    ranks, repeat = write_folder(tmp_path / "ranks")
    assert "2 rank sets added" in lab(
        "bank", "add", tmp_path / "ranks", "--out", tmp_path / "own.npz"
    )
    bank = Bank.load(tmp_path / "own.npz")
    kept, unseen = bank.select(dataset="shop").sets
    assert (kept.kind, unseen.kind, kept.group) == ("repeats", "unseen", "shops")
    assert kept.targets == 400
    assert unseen.targets == int((~repeat).sum())
    assert kept.counts[:128].tolist() == np.bincount(ranks[1], minlength=200)[1:129].tolist()
    assert len(bank) == len(load_bank()) + 2
    assert bank.sources["shop"]["licence"] == "ours"
    with pytest.raises(FileError, match=r"NAME\.npz"):
        read_folder(tmp_path / "ranks" / "none")


def test_ranks_among_smaller_catalogues_are_moved_to_the_mean_size():
    ranks, sizes = np.array([3, 450, 900]), np.array([900, 900, 1100])
    about = {"dataset": "x", "model": "m", "candidates": "unseen", "kind": "unseen"}
    one = RankSet.of_ranks(ranks, sizes, **about, group="g", family="x")
    assert one.items == 967
    assert one.ranks()[0] == 3
    assert one.ranks()[1:] == pytest.approx([450 * 967 / 900, 900 * 967 / 1100], rel=0.02)


@pytest.fixture(scope="module")
def left_out():
    """Trials on families that the prior was not learned from, without their spread."""
    chosen = {"citeulike-a", "steam-200k", "s3-toys", "tafeng", "kg-codex-m"}
    school = School.of(load_bank())
    trials = []
    for family in sorted(chosen):
        sets = [each for each in school.sets if each.family == family]
        sets = [each for each in sets if each.candidates == "unseen"]
        trials += run_trials(school.without(family), sets, 99, METRICS)[0]
    return trials


def covered(trials, spread) -> float:
    inside = []
    for trial in trials:
        reach = 2.5706 * spread[trial.ranks.kind] * trial.deviation
        inside.append(np.abs(trial.mean - np.log(trial.exact)) <= reach)
    return float(np.mean(inside))


@pytest.mark.slow
def test_intervals_cover_on_data_sets_left_out(left_out):
    assert covered(left_out, shipped().spread) > 0.88
    # Planted: intervals of a third of the width must be seen to fail.
    assert covered(left_out, {k: v / 3 for k, v in shipped().spread.items()}) < 0.8
    errors = np.abs([t.mean[1] - np.log(t.exact[1]) for t in left_out])
    assert np.median(errors) < 0.16


@pytest.mark.slow
def test_spreads_follow_the_errors(left_out):
    plain = spreads(list(standard_errors(left_out)))
    twice = []
    for trial in left_out:
        mean = trial.posterior.mean.copy()
        mean[0, 0] += trial.mean - np.log(trial.exact)
        twice.append(replace(trial, posterior=replace(trial.posterior, mean=mean)))
    for kind, value in spreads(list(standard_errors(twice))).items():
        assert value == pytest.approx(2 * plain[kind], rel=1e-6)
