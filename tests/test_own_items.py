"""Where users' own items are among the candidates: how they push targets down."""

from __future__ import annotations

import numpy as np
import pytest

import unsample
from unsample.errors import InputError
from unsample.lab.datasets import load_ranks
from unsample.posterior import Cloud, Prior, shipped, tenths_of_users
from unsample.posterior._components import PUSHED, components_of
from unsample.posterior._own_items import PUSHES, OwnItems, Push, push_matrix, usual_own_items
from unsample.sampling import RankGrid

SEEN = (2, 5, 5, 9, 12, 20, 33, 40, 80, 150)


def slowly_pushed(mass: np.ndarray, own: OwnItems, *, items: int) -> np.ndarray:
    """Return P(R) after the push, target by target: each rank of its own."""
    found = np.zeros(items)
    for above, weight in zip(own.above, own.weights, strict=True):
        whole = int(np.floor(above))
        part = above - whole
        for rank, share in enumerate(mass, start=1):
            for to, of_share in ((rank + whole, 1.0 - part), (rank + whole + 1, part)):
                found[min(to, items) - 1] += weight * of_share * share
    return found


@pytest.mark.parametrize("push", PUSHES)
def test_pushes_are_those_of_single_targets(push):
    items = 300
    own = OwnItems.of(push, SEEN)
    grid = RankGrid(np.arange(1, items + 1), items)
    mass = np.random.default_rng(0).dirichlet(np.ones(items))
    expected = slowly_pushed(mass, own, items=items)
    np.testing.assert_allclose(push_matrix(grid, own) @ mass, expected, atol=1e-12)


@pytest.mark.parametrize("seen", [SEEN, (0,) * 10, ()])
def test_columns_of_a_push_sum_to_one_on_any_grid(seen):
    grid = RankGrid.coarse(50_000)
    for own, likely in usual_own_items(seen):
        matrix = push_matrix(grid, own)
        assert likely > 0.0
        assert matrix.min() >= -1e-12
        np.testing.assert_allclose(matrix.sum(axis=0), 1.0)


def test_nothing_is_pushed_where_users_have_seen_nothing():
    grid = RankGrid.coarse(1_000)
    own = OwnItems.of(Push(share=0.9, evenness=1.0, probability=1.0), (0,) * 10)
    np.testing.assert_allclose(push_matrix(grid, own), np.eye(len(grid)))


def test_pushes_are_as_likely_as_the_kind():
    for seen in (SEEN, ()):
        found = components_of(shipped().learned[PUSHED], PUSHED, seen=seen)
        assert sum(each.prior_weight for each in found) == pytest.approx(1.0, abs=0.01)


def drawn_ranks(candidates, recommender="ease"):
    full = load_ranks("ml-1m", recommender, candidates=candidates)
    sample = unsample.designs.Fixed(99).simulate(full.ranks, items=full.items, rng=0)
    return full, sample


def test_models_that_put_own_items_first_are_held_where_no_sample_shows_them():
    # With 99 of 16,980 items, a sample hardly sees the first 170 ranks.
    prior = Prior.shipped(without="citeulike-a")
    for recommender in ("multivae", "ease"):
        full = load_ranks("citeulike-a", recommender, candidates="all")
        seen = full.items - load_ranks("citeulike-a", recommender).items
        sample = unsample.designs.Fixed(99).simulate(full.ranks, items=full.items, rng=0)
        exact = (full.ranks <= 20).mean()
        asked = {"metrics": "Recall@20", "prior": prior}
        told = unsample.estimate(sample, protocol="all", seen=seen, **asked)["Recall@20"]
        low, high = told.interval(0.95)
        assert low <= exact <= high
    # The planted error: as if own items were no candidates.
    wrong = unsample.estimate(sample, protocol="unseen", **asked)["Recall@20"]
    assert exact < wrong.interval(0.95)[0]


def test_own_items_leave_open_whether_anybody_stands_at_the_top():
    # All thirty items that a user has seen stand above each target: the first ranks are empty.
    rng = np.random.default_rng(0)
    items = 20_000
    full = np.floor((items - 30) ** rng.random(5_000)).astype(int) + 30
    sample = unsample.designs.Fixed(99).simulate(full, items=items, rng=1)
    wrong = unsample.estimate(sample, protocol="unseen", metrics="Recall@30")["Recall@30"]
    own = [30] * 5_000
    right = unsample.estimate(sample, protocol="all", seen=own, metrics="Recall@30")["Recall@30"]
    assert right.interval(0.95)[0] < 0.6 * wrong.interval(0.95)[0]


def test_seen_is_a_mean_or_a_number_for_each_user():
    prior = shipped()
    assert prior.knowing([3] * 40).seen == (3,) * 10
    assert prior.knowing(np.arange(1, 101).tolist()).seen == tenths_of_users(np.arange(1, 101))
    assert sum(prior.knowing(50.0).seen) == pytest.approx(500, rel=0.01)


def test_users_have_seen_fewer_items_than_there_are():
    asked = {"items": 1_000, "sampled": 99, "protocol": "all", "metrics": "NDCG@10"}
    for seen in (1_000, 10**12, [1_000] * 3):
        with pytest.raises(InputError, match="seen must be below items = 1,000"):
            unsample.estimate([1, 2, 3], seen=seen, **asked)
    with pytest.raises(InputError, match="seen must be below items"):
        unsample.compare({"a": [1, 2, 3], "b": [3, 2, 1]}, seen=1_000, **asked)
    with pytest.raises(InputError, match="seen must be below items"):
        unsample.published({"HR@10": 0.5}, users=100, seen=1_000, **asked)
    assert unsample.estimate([1, 2, 3], seen=900, **asked)["NDCG@10"].source == "prior"
    for wrong in (3, ["ml-1m"]):
        with pytest.raises(InputError, match="without must be"):
            Prior.shipped(without=wrong)


@pytest.mark.parametrize(
    ("seen", "protocol", "said"),
    [
        (3, "unseen", "must be left out with the protocol 'unseen'"),
        (3, "repeats", "must be left out"),
        (-1, "all", "got -1"),
        ("many", "all", "got 'many'"),
        ([1.0, np.nan], "all", "one number for each user"),
        ([[1, 2]], "all", "one number for each user"),
        ([], "all", "one number for each user"),
    ],
)
def test_wrong_numbers_of_seen_items_are_refused(seen, protocol, said):
    with pytest.raises(InputError, match=said):
        unsample.estimate([1, 2, 3], items=100, sampled=9, protocol=protocol, seen=seen)


def test_what_a_model_does_with_own_items_is_its_own():
    _, sample = drawn_ranks("all")
    fitted = Cloud.of(sample.counts, shipped(), protocol="all").fitted
    numbers = unsample.posterior.FixedNumbers(draws=512)
    own = numbers.uniforms(stream=1)
    other = numbers.uniforms(stream=2)
    pushes = [[], []]
    scales = [[], []]
    for side, uniform in enumerate((own, other)):
        of_draw = np.empty(512, dtype=int)
        for component, rows in enumerate(fitted.draws_of_components(numbers, own_uniform=uniform)):
            of_draw[rows] = component
        components = [fitted.drawn_components[each] for each in of_draw]
        pushes[side] = [each.own_items for each in components]
        scales[side] = np.array([each.scale for each in components])
    alike = np.mean([one == two for one, two in zip(*pushes, strict=True)])
    assert alike < 0.6
    assert np.mean(scales[0] == scales[1]) > 0.9
    # Each component is drawn as often as its weight has it, however it is chosen.
    of_draw = np.concatenate(
        [
            np.full(len(rows), at)
            for at, rows in enumerate(fitted.draws_of_components(numbers, own_uniform=own))
        ]
    )
    shares = np.bincount(of_draw, minlength=len(fitted.weights)) / 512
    np.testing.assert_allclose(shares, fitted.weights, atol=0.08)


def test_models_of_one_data_set_are_compared_with_what_users_have_seen():
    ranks = {name: drawn_ranks("all", name)[1].ranks for name in ("ease", "multivae")}
    items = load_ranks("ml-1m", "ease", candidates="all").items
    asked = {"items": items, "sampled": 99, "metrics": "NDCG@10", "protocol": "all"}
    result = unsample.compare(ranks, seen=165, **asked)
    alone = unsample.estimate(ranks["ease"], seen=165, **asked)["NDCG@10"]
    (entry,) = [each for each in result.standings if each.model == "ease"]
    assert (entry.low, entry.high) == alone.interval(0.95)
    with pytest.raises(InputError, match="seen must be a number"):
        unsample.compare(ranks, seen={"ml-1m": 165}, **asked)


def test_the_prior_without_a_family_knows_nothing_of_it():
    without = Prior.shipped(without="ml-100k")
    assert without.note.endswith("without movielens")
    assert Prior.shipped(without="movielens").note == without.note
    assert Prior.shipped(without="pinterest-20").note == shipped().note
    assert Prior.shipped().note == shipped().note
    mean = shipped().learned["unseen"].mean
    assert 0.0 < np.abs(without.learned["unseen"].mean - mean).max() < 0.5
    assert without.learned["unseen"].factors == shipped().learned["unseen"].factors
    with pytest.raises(InputError, match="got 'movies'"):
        Prior.shipped(without="movies")


def test_the_command_leaves_a_family_out(run):
    asked = [
        "estimate",
        "examples/ranks.csv",
        "--items",
        "3706",
        "--sampled",
        "99",
        "-m",
        "NDCG@10",
    ]
    _, plain, _ = run(*asked)
    code, out, _ = run(*asked, "--without", "ml-1m")
    assert (code, out != plain) == (0, True)
    code, _, err = run(*asked, "--without", "nothing")
    assert (code != 0, "must name a data set" in err) == (True, True)
    code, _, err = run(*asked, "--without", "ml-1m", "--prior", "none")
    assert (code != 0, "--without must be given without --prior" in err) == (True, True)
    code, out, _ = run(*asked, "--protocol", "all", "--seen", "165")
    assert code == 0


def test_seen_may_be_a_column_of_a_table(tmp_path, run):
    _, sample = drawn_ranks("all")
    seen = np.random.default_rng(0).integers(1, 200, size=len(sample.ranks))
    table = {"rank": sample.ranks, "n_seen": seen}
    path = tmp_path / "ranks.csv"
    lines = [f"{rank},{number}" for rank, number in zip(*table.values(), strict=True)]
    path.write_text("\n".join(["rank,n_seen", *lines]))
    asked = {"items": 3706, "sampled": 99, "protocol": "all", "metrics": "NDCG@10"}
    by_array = unsample.estimate(sample.ranks, seen=seen, **asked)["NDCG@10"].interval(0.95)
    for source in (path, str(path), [path]):
        by_column = unsample.estimate(source, seen="n_seen", **asked)["NDCG@10"].interval(0.95)
        assert by_column == by_array
    flags = ["--items", "3706", "--sampled", "99", "--protocol", "all", "-m", "NDCG@10"]
    code, out, _ = run("estimate", str(path), *flags, "--seen", "n_seen")
    assert (code, f"{by_array[0]:.4f}" in out) == (0, True)
    code, _, err = run("estimate", str(path), *flags, "--seen", "seen_items")
    assert (code != 0, "name a column" in err) == (True, True)
    with pytest.raises(InputError, match="where there is no table"):
        unsample.estimate(sample.ranks, seen="n_seen", **asked)
    path.write_text("rank,n_seen\n1,3\n2,\n")
    with pytest.raises(InputError, match="whole numbers from 0 on"):
        unsample.estimate(path, seen="n_seen", **asked)


def test_printed_numbers_of_all_items_are_read_as_pushed():
    paper = {"HR@1": 0.15, "HR@10": 0.62, "NDCG@10": 0.36}
    asked = {"items": 16_980, "sampled": 99, "users": 5_551, "metrics": "Recall@10"}
    unseen = unsample.published(paper, protocol="unseen", **asked)["Recall@10"]
    pushed = unsample.published(paper, protocol="all", seen=36, **asked)["Recall@10"]
    unknown = unsample.published(paper, protocol="all", **asked)["Recall@10"]
    for one in (pushed, unknown):
        low, high = one.interval(0.95)
        assert low < unseen.interval(0.95)[0]
        assert (high - low) / one.value > 1.2 * np.ptp(unseen.interval(0.95)) / unseen.value
    # Nobody has seen anything: the push does nothing.
    nothing = unsample.published(paper, protocol="all", seen=0, **asked)["Recall@10"]
    assert nothing.value == pytest.approx(unseen.value, rel=0.1)
