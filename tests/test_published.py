"""Numbers of papers: reading them, refusing contradictions, and estimating from them."""

import re
import warnings
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unsample
from tests.promises import BrokenPromiseError, Finding, keep, simulations
from unsample._rounding import percent_at_most, rounded, rounded_down, rounded_up
from unsample.counts import Negatives
from unsample.errors import ContradictionError, InputError, RefutedWarning, UnsampleWarning
from unsample.lab.corpus import load_corpus
from unsample.lab.datasets import load_ranks
from unsample.questions.published.ask import published
from unsample.sampling import SamplingModel, draw_sampled_ranks

PAPER = {"HR@1": "0.180", "HR@10": "0.690", "NDCG@10": "0.402"}
SETUP = {"items": 3706, "sampled": 99, "users": 6040}
PRINTED = ("HR@1", "HR@5", "HR@10", "NDCG@10")


def _print(ranks: np.ndarray, digits: int, names: tuple[str, ...] = PRINTED) -> dict[str, str]:
    """Return sampled metrics as a paper would print them."""
    metrics = unsample.exact(ranks, items=100, metrics=names)
    return {name: f"{metrics[name].value:.{digits}f}" for name in names}


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_more_numbers_narrow_the_limits_and_the_prior_fills_in_what_they_leave_open():
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    ranks = draw_sampled_ranks(full.ranks, items=full.items, sampled=99, rng=0)
    setup = SETUP | {"items": 3541, "protocol": "unseen", "metrics": "Recall@10"}
    truth, widths = float(np.mean(full.ranks <= 10)), []
    for names, within in ((("HR@10",), 2.5), (PRINTED, 1.15)):
        found = published(_print(ranks, 3, names), **setup)["Recall@10"]
        assert truth / within < found.value < truth * within
        low, high = found.interval()
        assert low < truth < high
        widths.append((high - low, np.ptp(found.bounds())))
    assert widths[1] < widths[0]


def test_numbers_that_no_ranks_but_some_histogram_can_give_are_reported():
    with pytest.warns(RefutedWarning, match=r"HR@50 = 0.001 and HR@51 = 0.900 but for chance"):
        result = published({"HR@50": "0.001", "HR@51": "0.900", "HR@90": "0.950"}, **SETUP)
    assert result["Recall@10"].bounds() == (0.0, 1.0)
    # A diagnostic changes no interval.
    assert result["Recall@10"].source == "prior"
    assert result["Recall@10"].interval() == result.curves.metric("Recall@10").interval()


def test_without_a_prior_the_interval_is_the_bounds_of_the_numbers():
    found = published(PAPER, **SETUP, metrics=["Recall@10", "Recall@200"], prior=None)
    for entry in found.values():
        assert entry.source == "bounds"
        assert entry.interval(0.9) == entry.bounds(0.9) == found.paper.bounds(entry.metric, 0.9)
    later = published(PAPER, **SETUP, metrics="Recall@10").metric("Recall@200")
    assert later.bounds() == pytest.approx(found["Recall@200"].bounds(), abs=1e-6)
    asked = published(PAPER, **SETUP, metrics="Recall@200")["Recall@200"]
    assert later.to_dict() == asked.to_dict()


# -- how far printed numbers are from full ones ---------------------------------------------------

_HIGHER = re.compile(
    r"(\S+) = (\S+) is about (\S+) times as high as on all 3,706 items "
    r"\((\S+) or more at 95 %, (\S+) or more whatever P\(R\) is\)\."
)


def test_each_limit_of_how_much_higher_says_how_certain_it_is():
    found = published(PAPER, **SETUP, metrics=["HR@1", "HR@10", "NDCG@10"])
    told = _HIGHER.findall(" ".join(str(found).split()))
    assert [name for name, *_ in told] == ["HR@1", "HR@10", "NDCG@10"]
    for name, value, about, calibrated, certain in told:
        entry, printed = found[name], float(value)
        ratios = [printed / each for each in (entry.value, entry.interval()[1], entry.bounds()[1])]
        assert float(about) == pytest.approx(ratios[0], rel=0.06)
        for limit, ratio in zip((calibrated, certain), ratios[1:], strict=True):
            assert ratio / 1.1 < float(limit) <= ratio
    assert "at least" not in str(found)


def test_without_a_prior_only_what_is_certain_is_said():
    found = published(PAPER, **SETUP, metrics="HR@10", prior=None)
    most = found["HR@10"].bounds()[1]
    told = re.search(
        r"HR@10 = 0.690 is (\S+) or more times as high as on all 3,706 items, whatever P\(R\) is\.",
        str(found),
    )
    assert most / 1.1 < 0.690 / float(told[1]) >= most


@given(st.floats(1e-9, 1e9), st.integers(1, 5))
def test_limits_are_rounded_to_the_side_where_they_hold(value, digits):
    down, near, up = (f(value, digits) for f in (rounded_down, rounded, rounded_up))
    assert float(down) <= value <= float(up)
    assert float(down) <= float(near) <= float(up)
    assert float(up) - float(down) <= value * 10.0 ** (1 - digits) * (1 + 1e-9)
    assert not {"e", "E"} & {*(down + near + up)}


@given(st.floats(0.0, 50.0))
def test_a_share_that_is_an_upper_limit_is_never_understated(share):
    told = percent_at_most(share)
    assert float(told.removesuffix(" %")) >= 100.0 * share * (1 - 1e-12)
    assert abs(float(told.removesuffix(" %")) - 100.0 * share) <= 0.1 * (1 + 1e-9)


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "options", "low", "high"),
    [
        ({"HR@10": "0.690"}, {}, 0.6895, 0.6905),
        ({"HR@10": Decimal("0.690")}, {}, 0.6895, 0.6905),
        ({"HR@10": 0.4, "HR@1": 0.18}, {}, 0.395, 0.405),
        ({"HR@10": "0.4", "HR@1": 0.18}, {}, 0.35, 0.45),
        ({"HR@10": "69.0"}, {"percent": True}, 0.6895, 0.6905),
        ({"HR@10": 1}, {}, 0.5, 1.5),
    ],
)
def test_rounding_is_read_from_the_digits(numbers, options, low, high):
    first = published(numbers, **SETUP, **options).numbers[0]
    assert (first.low, first.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("numbers", "names"),
    [
        ({"HR@1": 0.30, "HR@10": 0.69, "NDCG@10": 0.72}, ("HR@10", "NDCG@10")),
        ({"HR@1": "0.10", "HR@10": "0.69", "NDCG@10": "0.50"}, ("HR@1", "HR@10", "NDCG@10")),
        ({"HR@5": 0.5, "HR@10": 0.4}, ("HR@5", "HR@10")),
        ({"AUC": "0.900", "HR@1": "0.100", "MRR": "0.700"}, ("HR@1", "MRR")),
    ],
)
def test_the_fewest_numbers_that_clash_are_named(numbers, names):
    with pytest.raises(ContradictionError) as caught:
        published(numbers, **SETUP)
    assert caught.value.names == names
    assert all(name in str(caught.value) for name in names)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize(("sign", "gain"), [(-1, np.log2(11)), (1, np.log2(3))])
def test_the_limits_of_a_contradiction_are_sharp(sign, gain):
    """With a hits at 1 and b - a at 2..10, NDCG@10 is a + (b - a)/log2(r + 1), r from 10 to 2."""
    hits, more = 0.2, 0.5
    edge = hits + (more - hits) / gain
    inside, outside = (f"{edge - shift * sign:.6f}" for shift in (2e-5, -2e-5))
    numbers = {"HR@1": "0.200000", "HR@10": "0.500000"}
    published(numbers | {"NDCG@10": inside}, **SETUP)
    with pytest.raises(ContradictionError, match="contradict each other"):
        published(numbers | {"NDCG@10": outside}, **SETUP)


@pytest.mark.parametrize(
    ("numbers", "options", "message"),
    [
        ({}, {}, "must be a mapping"),
        ({"HR@10": 69.1}, {}, "is it a percentage"),
        ({"HR@10": 120.0}, {"percent": True}, "between 0 and 1, got 1.2"),
        ({"HR@10": float("nan")}, {}, "finite number"),
        ({"HR@10": "about 0.7"}, {}, "number as printed"),
        ({"HR@10": 0.5, "Recall@10": 0.5}, {}, "HR@10 and Recall@10"),
        ({"HR@100": 0.5}, {}, "at most sampled = 99"),
        ({"HR@10": 0.5}, {"items": 99, "sampled": 3706}, "swapped"),
        ({"HR@10": 0.5}, {"runs": 0}, "runs must be an integer of at least 1"),
        ({"HR@10": 0.5}, {"users": 0}, "users must be an integer of at least 1"),
        ({"HR@10": 0.5}, {"items": None}, "items must be given with printed numbers"),
        (
            {"HR@10": 0.5},
            {"negatives": Negatives(replacement=False), "items": 50},
            "at most items - 1",
        ),
    ],
)
def test_bad_input_is_refused_with_a_reason(numbers, options, message):
    with pytest.raises(InputError, match=message):
        published(numbers, **(SETUP | options))


# -- slips in formulas ----------------------------------------------------------------------------

#: What is computed of a rank by mistake: the weights of ranks up to 10, and what the note says.
SLIPS = {
    "NDCG one place later": ("NDCG@10", lambda r: 1 / np.log2(r + 2), "1/log2(r + 2) in place of"),
    "NDCG by natural logarithms": ("NDCG@10", lambda r: 1 / np.log(r + 1), "1/ln(r + 1) in place"),
    "MRR one place later": ("MRR@10", lambda r: 1 / (r + 1), "1/(r + 1) in place of 1/r"),
}


def _printed_with(weights, name, *, sampled=99, seed=0):
    """Return HR@5, HR@10 and a metric of sampled ranks of EASE on ml-1m, computed by weights."""
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    ranks = draw_sampled_ranks(full.ranks, items=full.items, sampled=sampled, rng=seed)
    value = float(np.mean(np.where(ranks <= 10, weights(ranks), 0.0)))
    return _print(ranks, 3, ("HR@5", "HR@10")) | {name: f"{value:.3f}"}


def _warnings(numbers, **options):
    """Return what is warned of, which is what Python's warnings and JSON say."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UnsampleWarning)
        found = published(numbers, **(SETUP | {"metrics": "Recall@50"} | options))
    assert [str(each.message) for each in heard] == found.to_dict()["warnings"]
    return "\n".join(found.to_dict()["warnings"])


@pytest.mark.parametrize("case", SLIPS)
def test_a_slip_in_a_formula_is_named(case):
    name, weights, words = SLIPS[case]
    right = {"NDCG@10": lambda r: 1 / np.log2(r + 1), "MRR@10": lambda r: 1 / r}[name]
    assert not _warnings(_printed_with(right, name))
    try:
        told = _warnings(_printed_with(weights, name))
    except ContradictionError as problem:
        told = str(problem)
    assert words in told
    assert name in told


def test_numbers_below_those_of_even_ranks_are_low_whatever_the_prior():
    ranks, discount = np.arange(1, 11), 1 / np.log2(np.arange(2, 12))
    even = 0.69 * discount.mean()
    error = 3 * np.sqrt(0.69 * discount.var() / SETUP["users"])
    for shift, low in ((0.002, True), (-0.002, False)):
        numbers = {"HR@10": "0.690", "NDCG@10": f"{even - error - shift:.4f}"}
        told = _warnings(numbers, prior=None)
        assert ("spread evenly" in told) == low
        assert ("it would be 0.313, and models put more targets at the top" in told) == low
        assert ("1/log2(r + 2) in place of 1/log2(r + 1) would explain it" in told) == low
        # Users that had items ranked that they know: their targets come after these.
        assert "spread evenly" not in _warnings(numbers, prior=None, protocol="all")
    within = np.mean(1 / ranks)
    few = {"HR@10": "0.69", "MRR@10": f"{0.69 * within - 0.02:.3f}"}
    assert "MRR@10 = 0.182 is low" in _warnings(few, prior=None)
    assert not _warnings(few, prior=None, users=100)  # which probability gives


def test_hit_rates_between_say_more_of_even_ranks():
    """By HR@10 alone NDCG@10 may be 0.34, with HR@5 it must be more."""
    numbers = {"HR@10": "0.700", "NDCG@10": "0.340"}
    assert not _warnings(numbers, prior=None)
    told = _warnings({"HR@5": "0.550", **numbers}, prior=None)
    discount = 1 / np.log2(np.arange(2, 12))
    even = 0.55 * discount[:5].mean() + 0.15 * discount[5:].mean()
    assert f"it would be {even:.3f}"[:-1] in told


def test_contradictions_say_which_slip_would_explain_them():
    with pytest.raises(
        ContradictionError, match=r"1/ln\(r \+ 1\) in place of .* would explain them"
    ):
        published({"HR@10": "0.500", "NDCG@10": "0.550"}, **SETUP)
    with pytest.raises(ContradictionError, match=r"NDCG\(ideal=k\) here\) would explain them"):
        published({"HR@10": "0.500", "NDCG@10": "0.080"}, **SETUP)
    with pytest.raises(ContradictionError) as caught:
        published({"HR@5": 0.5, "HR@10": 0.4}, **SETUP)
    assert "explain" not in str(caught.value)


def test_a_slip_is_shown_wherever_a_result_is(run, tmp_path):
    words = ("HR@10=0.690", "NDCG@10=0.280", "--items=3706", "--sampled=99", "--users=6040")
    page = tmp_path / "page.html"
    _, out, err = run("published", *words, "--html", page)
    assert "warning: NDCG@10 = 0.280 is low" in err
    assert "NDCG@10 = 0.280 is low" in page.read_text(encoding="utf-8")
    _, out, _ = run("published", *words, "--json")
    assert "NDCG@10 = 0.280 is low" in out
    _, _, err = run("published", "A:" + words[0], "A:" + words[1], "B:HR@10=0.6", *words[2:])
    assert "NDCG@10 = 0.280 is low" in err


# -- promises -------------------------------------------------------------------------------------


def _coverage(items_factor: float, simulations: int, candidates: str) -> float:
    """Return the least coverage over metrics of 95 % intervals from four printed numbers."""
    names = [f"{family}@{k}" for family in ("Recall", "NDCG", "AP") for k in (5, 10, 50, 100)]
    worst = 1.0
    for dataset, recommender in (("ml-1m", "ease"), ("ml-1m", "neumf"), ("citeulike-a", "als")):
        bundled = load_ranks(dataset, recommender, candidates=candidates)
        users, items = len(bundled), float(bundled.items.mean())
        truth = unsample.exact(bundled.ranks, items=bundled.items, metrics=names)
        rng = np.random.default_rng(21)
        covered = np.zeros(len(names))
        for _ in range(simulations):
            drawn = rng.integers(users, size=users)
            ranks = draw_sampled_ranks(
                bundled.ranks[drawn], items=bundled.items[drawn], sampled=99, rng=rng
            )
            result = published(
                _print(ranks, 4),
                items=round(items * items_factor),
                sampled=99,
                users=users,
                metrics=names,
                protocol=candidates,
            )
            limits = np.array([result[name].interval() for name in names])
            exact = np.array([truth[name].value for name in names])
            covered += (limits[:, 0] <= exact) & (exact <= limits[:, 1])
        worst = min(worst, float(covered.min()) / simulations)
    return worst


def _findings(items_factor: float, size: int, candidates: str) -> list[Finding]:
    promise = "intervals from printed numbers cover the exact metrics"
    least = _coverage(items_factor, size, candidates)
    return [Finding(promise, candidates, "least coverage", least, 0.93, True, size)]


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_intervals_from_printed_numbers_cover_the_exact_metrics(candidates, ledger):
    keep(ledger(_findings(1.0, simulations(40), candidates)))


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_a_wrong_catalogue_does_not_cover(ledger):
    findings = ledger(_findings(4.0, 10, "unseen"), planted="N four times too large, published")
    with pytest.raises(BrokenPromiseError):
        keep(findings)
    assert findings[0].value < 0.5


_NOT_ACCUSED = "right formulas of printed numbers are not accused"
#: Sets of numbers as papers print them; one hit rate tells the least of the formula.
_SETS = (("HR@10", "NDCG@10"), ("HR@10", "MRR@10"), ("HR@5", "NDCG@5", "HR@10", "NDCG@10"))


def _share_accused(size: int, names: tuple[str, ...], *, later: int) -> float:
    """Return in how many papers on models of the corpus a slip is named.

    Their formulas take ranks for ``later`` ones: 0 is right.
    """
    rng = np.random.default_rng(22)
    corpus = [each for each in load_corpus() if each.kind == "unseen" and each.items > 200]
    accused = 0
    for number in rng.choice(len(corpus), size, replace=False):
        model, ranks = corpus[number], np.arange(1, 101)
        distribution = SamplingModel(model.items, 99)
        probabilities = distribution.matrix(ranks, ranks, model.grid) @ (
            model.counts / model.targets
        )
        users = min(model.targets, 6040)
        shares = rng.multinomial(users, probabilities / probabilities.sum()) / users
        numbers = {}
        for metric in map(unsample.metrics.parse, names):
            weights = metric.weights(ranks, 100)
            if not metric.family.counts_hits:
                weights = np.where(weights > 0.0, metric.uncut(ranks + float(later), 100), 0.0)
            numbers[metric.name] = f"{shares @ weights:.3f}"
        try:
            found = published(numbers, items=model.items, sampled=99, users=users, metrics="HR@10")
        except ContradictionError as problem:
            accused += "would explain" in str(problem)
        else:
            accused += any("in place of" in note.text for note in found.notes)
    return accused / size


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("names", _SETS, ids=" ".join)
def test_right_formulas_are_not_accused_of_a_slip(names, ledger):
    size, setting = simulations(100), ", ".join(names)
    share = _share_accused(size, names, later=0)
    keep(ledger([Finding(_NOT_ACCUSED, setting, "accused", share, 0.02, False, size)]))


@pytest.mark.validity
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("names", _SETS, ids=" ".join)
def test_ranks_that_count_one_too_many_are_found_out(names, ledger):
    size, setting = simulations(50), ", ".join(names)
    promise, limit = "discounts one place later are found out", 0.5 if len(names) == 2 else 0.95
    share = _share_accused(size, names, later=1)
    keep(ledger([Finding(promise, setting, "accused", share, limit, True, size)]))
    planted = Finding(_NOT_ACCUSED, setting, "accused", share, 0.02, False, size)
    with pytest.raises(BrokenPromiseError):
        keep(ledger([planted], planted="discounts one place later"))


def test_means_of_runs_are_taken():
    options = {"items": 3706, "sampled": 99, "metrics": "Recall@100"}
    # The mean of five runs on 40 users: a fifth of a hit.
    mean = {"HR@1": "0.105", "HR@10": "0.480"}
    with pytest.warns(UnsampleWarning, match=r"0.1 and 0.125\) or .*0.5\); .* say runs if"):
        published(mean, users=40, **options)
    assert published(mean, users=40, runs=5, **options)["Recall@100"].value > 0.1


# -- tables of models -----------------------------------------------------------------------------

MODELS = {
    "EASE": {"HR@10": "0.710", "NDCG@10": "0.448"},
    "NCF": {"HR@10": "0.700", "NDCG@10": "0.440"},
    "SASRec": {"HR@10": "0.824", "NDCG@10": "0.590"},
    "Pop": {"HR@10": "0.450"},
}
WIDE = "model,HR@10,NDCG@10\nEASE,0.710,0.448\nNCF,0.700,0.440\nSASRec,0.824,0.590\nPop,0.450,-\n"
LONG = "Model,metric,value\n" + "".join(
    f"{model},{metric},{value}\n" for model, row in MODELS.items() for metric, value in row.items()
)
#: Data sets with a catalogue, a sample and users of their own.
TWO = """dataset,model,HR@10,items,sampled,users
ml-1m,EASE,0.710,3706,99,6040
ml-1m,NCF,0.450,3706,99,6040
yelp,EASE,0.80,20000,500,30000
yelp,NCF,0.60,20000,500,30000
"""


def _written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_of_models_is_read_in_every_form(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    asked = SETUP | {"protocol": "unseen", "metrics": ["NDCG@10", "Recall@100"]}
    wide, long = _written(tmp_path / "wide.csv", WIDE), _written(tmp_path / "long.csv", LONG)
    forms = {
        "dict": MODELS,
        "wide": wide,
        "long": str(long),
        "text in a frame": pandas.read_csv(wide, dtype=str),
        "long frame": polars.read_csv(long, infer_schema_length=0),
        # Numbers lose zeros at the end: 0.71 has as many decimals as the longest of its column.
        "numbers": pandas.read_csv(wide, na_values="-"),
        "columns": {"model": ["EASE"], "HR@10": ["0.710"], "NDCG@10": ["0.448"]},
    }
    boards = {name: published(form, **asked) for name, form in forms.items()}
    expected = boards["dict"].rows()
    for name, board in boards.items():
        if name == "columns":  # of one model, which is compared with none
            assert board.places("NDCG@10") == {"EASE": (1, 1)}
            with pytest.raises(InputError, match="at least two"):
                board.comparison()
        else:
            assert board.rows() == expected, name
    alone = published(MODELS["EASE"], **asked)
    assert boards["wide"].published("EASE")["NDCG@10"].to_dict() == alone["NDCG@10"].to_dict()
    assert [str(each) for each in boards["numbers"].published("Pop").numbers] == ["HR@10 = 0.450"]


def test_places_tell_which_models_are_tied():
    board = published(MODELS, **SETUP, protocol="unseen", metrics=["NDCG@10", "Recall@100"])
    places = board.places("Recall@100")
    assert places == board.comparison().places("Recall@100")
    assert places["SASRec"] == (1, 1)
    assert places["EASE"][1] >= places["NCF"][0]
    assert places["Pop"][0] > 1
    text = str(board)
    assert re.search(r"Recall@100 +SASRec +0.\d+ +0.\d+ .. 0.\d+ +1\n", text)
    assert "SASRec has the highest full-catalogue Recall@100" in text
    row = next(row for row in board.rows() if (row["model"], row["metric"]) == ("Pop", "NDCG@10"))
    assert row["printed"] is None
    assert row["low"] <= row["value"] <= row["high"]


def test_data_sets_have_designs_of_their_own(tmp_path):
    board = published(_written(tmp_path / "two.csv", TWO), metrics="Recall@100")
    assert list(board.data_sets) == ["ml-1m", "yelp"]
    assert board.published("NCF", data_set="yelp").counts.samples == (500, 500)
    assert board.places("Recall@100", data_set="yelp") == {"EASE": (1, 1), "NCF": (2, 2)}
    assert {row["dataset"] for row in board.rows()} == {"ml-1m", "yelp"}
    with pytest.raises(InputError, match="data_set must be one of ml-1m, yelp, got None"):
        board.places("Recall@100")


def test_the_command_writes_a_leaderboard_in_every_form(run, tmp_path):
    table, page = _written(tmp_path / "table.csv", WIDE), tmp_path / "page.html"
    words = (table, "--items=3706", "--sampled=99", "--users=6040", "--protocol=unseen")
    code, text, _ = run("published", *words, "-m", "NDCG@10", "--html", page)
    assert code == 0
    assert re.search(r"NDCG@10 +SASRec +0.590 +0.\d+ +0.\d+ .. 0.\d+ +1", text)
    assert "SASRec" in page.read_text(encoding="utf-8")
    _, csv, _ = run("published", *words, "-m", "NDCG@10", "--csv")
    assert csv.splitlines()[0].startswith("metric,model,printed,value,low,high,first_place")
    assert len(csv.splitlines()) == 1 + len(MODELS)
    for form, sign in (
        ("--latex", r"\toprule"),
        ("--markdown", "| SASRec"),
        ("--json", '"models"'),
    ):
        _, out, _ = run("published", *words, "-m", "NDCG@10", form)
        assert sign in out
    code, _, err = run("published", *words, "--html", table)
    assert code == 2
    assert "--html" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,HR@10\nA,0.5\n", "must have a column 'model', got name, HR@10"),
        ("model,year\nA,2020\n", "columns must be metrics or known ones, got 'year'"),
        ("model,users\nA,6040\n", "must have metrics, got none"),
        ("model,HR@10\nA,0.5\nA,0.6\n", "one row for each data set, got two of A"),
        ("model,metric,value\nA,HR@10,0.5\nA,HR@10,0.6\n", "HR@10 of A must be given once"),
        ("model,HR@10,users\nA,0.5,many\n", "users of A must be a whole number, got 'many'"),
        ("model,HR@10\nA,0.5\nB,half\n", "B: HR@10 must be a number as printed, got 'half'"),
        ("model,HR@10\nA,0.5\n,0.6\n", "every row must name its model"),
        ("model,metric,value,HR@5\nA,HR@10,0.5,0.4\n", "got the column 'HR@5' too"),
    ],
)
def test_bad_tables_are_refused_with_a_reason(text, message, tmp_path):
    with pytest.raises(InputError, match=re.escape(message)):
        published(_written(tmp_path / "bad.csv", text), **SETUP)


def test_models_without_a_design_or_half_a_dict_are_refused():
    with pytest.raises(InputError, match="A: items must be given with printed numbers"):
        published({"A": {"HR@10": "0.5"}}, sampled=99, users=100)
    with pytest.raises(InputError, match=r"a dict for each model or for none, got '0.5' for HR@10"):
        published({"A": {"HR@10": "0.5"}, "HR@10": "0.5"}, **SETUP)


def test_warnings_of_a_table_name_the_model():
    with pytest.warns(UnsampleWarning, match=r"B: no number of hits over users = 7 gives HR@10"):
        board = published(
            {"A": {"HR@10": "0.571"}, "B": {"HR@10": "0.690"}}, **(SETUP | {"users": 7})
        )
    assert len(board.warnings) == 1
