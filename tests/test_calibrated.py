"""What other data sets know, as users meet it: intervals, chances, and priors of their own."""

import json

import numpy as np
import pytest

import unsample
from unsample.errors import InputError, UnsampleWarning
from unsample.estimators.prior import shipped
from unsample.lab import load_ranks
from unsample.law import draw_sampled_ranks

pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
METRICS = ["Recall@10", "NDCG@10"]


@pytest.fixture(scope="module")
def bundled():
    return load_ranks("ml-1m", "ease", candidates="unseen")


@pytest.fixture(scope="module")
def drawn(bundled):
    return draw_sampled_ranks(bundled.ranks, items=bundled.items, sampled=99, rng=0)


def _estimate(drawn, bundled, **options):
    return unsample.estimate(
        drawn,
        items=bundled.items,
        sampled=99,
        **{"metrics": METRICS, "candidates": "unseen", **options},
    )


def test_calibrated_intervals_are_the_default_and_far_narrower(bundled, drawn):
    result = _estimate(drawn, bundled)
    for name, entry in result.items():
        truth = float(unsample.metrics.parse(name).weights(bundled.ranks, 3706).mean())
        low, high = entry.interval()
        least, most = entry.interval(kind="guaranteed")
        assert low < truth < high
        assert least < truth < most
        assert high - low < 0.5 * (most - least)
        assert (low, high) == entry.interval(kind="calibrated")
        own = entry.interval(population=False)
        assert low <= own[0] < entry.value < own[1] <= high
        wider = entry.interval(0.99)
        assert wider[0] < low
        assert high < wider[1]
    assert "guaranteed" in str(result)
    assert "data sets like those" in str(result)
    row = result.to_dict()["estimates"][0]
    assert row["guaranteed_low"] < row["low"] < row["value"] < row["high"] < row["guaranteed_high"]
    with pytest.raises(InputError, match="kind must be one of"):
        result["Recall@10"].interval(kind="certain")


def test_without_a_prior_all_is_as_the_shape_says(bundled, drawn):
    result = _estimate(drawn, bundled, prior=None)
    assert result.methods == ("mle",)
    entry = result["NDCG@10"]
    assert entry.calibrated is None
    assert entry.interval() == entry.interval(kind="guaranteed")
    assert "data sets like those" not in str(result)
    with pytest.raises(InputError, match="this result has no prior"):
        entry.interval(kind="calibrated")


def test_unknown_candidates_and_kinds_make_it_wider(bundled, drawn):
    known = _estimate(drawn, bundled)["NDCG@10"].interval()
    unknown = _estimate(drawn, bundled, candidates=None)["NDCG@10"].interval()
    assert np.ptp(np.log(unknown)) > np.ptp(np.log(known))
    graph = _estimate(drawn, bundled, kind="graph")
    assert graph.methods == ("auto(kind=graph)",)
    assert graph["NDCG@10"].interval() != known
    with pytest.raises(InputError, match="kind must be one of recommendation"):
        _estimate(drawn, bundled, kind="movies")
    with pytest.raises(InputError, match="prior must be a Prior"):
        _estimate(drawn, bundled, prior=5)


@pytest.mark.parametrize("ranks", [[1, 2, 50], [61] * 4000])
def test_few_targets_and_data_unlike_all_others_keep_to_the_guarantee(ranks):
    sampled = ranks if len(ranks) < 10 else draw_sampled_ranks(ranks, items=400, sampled=99, rng=0)
    result = unsample.estimate(sampled, items=400, sampled=99, metrics="Recall@50")
    entry = result["Recall@50"]
    assert entry.interval() == entry.interval(kind="guaranteed")


def test_curves_have_the_intervals_of_their_metrics(bundled, drawn):
    from unsample.metrics import Recall
    from unsample.pages._curves import AtManyK

    result = _estimate(drawn, bundled)
    curve = AtManyK(result, np.array([10, 50])).curve(Recall)
    assert curve.limits["interval"][0] == pytest.approx(result["Recall@10"].interval(), rel=1e-4)


# -- chances -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(bundled):
    names = ("ease", "itemknn", "als")
    return {
        name: draw_sampled_ranks(
            load_ranks("ml-1m", name, candidates="unseen").ranks,
            items=bundled.items,
            sampled=99,
            rng=place,
        )
        for place, name in enumerate(names)
    }


def test_chances_add_up_and_follow_the_estimates(models, bundled):
    options = {"items": bundled.items, "sampled": 99, "candidates": "unseen"}
    result = unsample.compare(models, metrics=METRICS, **options)
    for metric in METRICS:
        both = [result.chance(*pair, metric) for pair in (("ease", "als"), ("als", "ease"))]
        assert sum(both) == pytest.approx(1.0)
        best = [row.chance for row in result.standings if row.metric == metric]
        assert sum(best) == pytest.approx(1.0)
        assert result.chance("ease", "itemknn", metric) > 0.8
    pair = result.difference("ease", "itemknn", "Recall@10")
    assert pair.proven is None
    assert "chance" in str(result)
    plain = unsample.compare(models, metrics=METRICS, **options, prior=None)
    assert plain.chance("ease", "itemknn", "Recall@10") != result.chance(
        "ease", "itemknn", "Recall@10"
    )
    assert all(pair.winner == pair.proven for pair in plain.differences)


def test_a_chance_is_a_verdict_after_correction(models, bundled):
    far = {"good": models["ease"], "bad": np.minimum(models["ease"] * 4 + 3, 100)}
    result = unsample.compare(
        far, items=bundled.items, sampled=99, metrics="NDCG@10", candidates="unseen"
    )
    pair = result.differences[0]
    assert pair.winner == "good"
    assert pair.chance > 0.975
    text = result.sentences()[0]
    assert ("with a chance of" in text) == (pair.proven is None)


# -- a history of one's own ----------------------------------------------------------------------


def test_own_history_narrows_and_travels(bundled, drawn, tmp_path, run):
    others = [
        load_ranks("ml-1m", name, candidates="unseen").ranks for name in ("itemknn", "als", "neumf")
    ]
    own = unsample.Prior.learn(others, items=3706)
    plain, learned = (
        _estimate(drawn, bundled, prior=prior)["NDCG@10"] for prior in (shipped(), own)
    )
    assert np.ptp(np.log(learned.interval())) < np.ptp(np.log(plain.interval()))
    file = tmp_path / "prior.npz"
    own.save(file)
    again = _estimate(drawn, bundled, prior=file)["NDCG@10"]
    assert again.interval() == pytest.approx(learned.interval(), rel=1e-6)
    ranks = tmp_path / "ranks.csv"
    ranks.write_text("rank\n" + "\n".join(map(str, drawn)))
    call = ["estimate", ranks, "--items", 3706, "--sampled", 99, "-m", "NDCG@10", "--json"]
    code, out, _ = run(*call, "--prior", file, "--candidates", "unseen")
    assert code == 0
    code, other, _ = run(*call, "--prior", "none", "--candidates", "unseen")
    assert json.loads(out)["estimates"][0]["low"] > json.loads(other)["estimates"][0]["low"]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], "for each model, got none"),
        ([[]], "at least one rank"),
        ([[0, 1]], "ranks in 1..items = 5, got 0 to 1"),
        ([[1, 9]], "got 1 to 9"),
        ([[1.5]], "ranks must"),
        ([[float("nan")]], "ranks must"),
    ],
)
def test_a_history_that_is_none_is_refused(ranks, text):
    with pytest.raises(InputError, match=text):
        unsample.Prior.learn(ranks, items=5)


def test_printed_hit_rates_have_calibrated_intervals():
    numbers = {"HR@1": "0.180", "HR@10": "0.690"}
    with pytest.warns(UnsampleWarning):
        result = unsample.published(
            numbers, items=3706, sampled=99, users=6040, candidates="unseen", metrics="NDCG@10"
        )
    low, high = result["NDCG@10"].interval()
    least, most = result["NDCG@10"].interval(kind="guaranteed")
    assert high - low < most - least
