"""Statistical promises, by simulation. ``make validity`` runs them and writes out/validity.

The same checks judge right programs and wrong ones: with an error planted, they must refuse.
"""

import itertools
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from benchmarks import coverage as cells

import unsample
from tests.promises import BrokenPromiseError, Finding, bias, coverage, keep, simulations
from unsample.designs import Candidates, Fixed, Scorer, run
from unsample.errors import UnsampleWarning
from unsample.lab.datasets import load_ranks
from unsample.law import Law, draw_sampled_ranks
from unsample.metrics import parse_all

# Of hundreds of samples some hardly agree with a true shape by chance: their intervals are wider.
pytestmark = [
    pytest.mark.validity,
    pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning"),
]

ITEMS, SAMPLED, USERS = 2000, 99, 2000
METRICS = ["Recall@50", "Recall@100", "NDCG@100", "AUC"]


def _population(rng: np.random.Generator) -> np.ndarray:
    return np.ceil(ITEMS * rng.beta(0.6, 2.0, size=USERS)).astype(int).clip(1, ITEMS)


@dataclass(frozen=True)
class Told:
    """What the estimator is told of the samples: the truth, or a planted error."""

    items: int = ITEMS
    #: How often every user is counted.
    copies: int = 1


TRUTH = Told()


def _simulate(method: str, size: int, told: Told = TRUTH) -> dict[str, np.ndarray]:
    """Return rows by metric: value, interval of chance, whole interval, truth of such users."""
    rng = np.random.default_rng(99)
    limit = np.ceil(ITEMS * rng.beta(0.6, 2.0, size=2_000_000)).astype(int).clip(1, ITEMS)
    truth = unsample.exact(limit, items=ITEMS, metrics=METRICS)
    rows: dict[str, list[tuple[float, ...]]] = {m: [] for m in METRICS}
    for _ in range(size):
        ranks = Law(ITEMS, SAMPLED).draw(_population(rng), rng=rng)
        result = unsample.estimate(
            np.tile(ranks, told.copies),
            items=told.items,
            sampled=SAMPLED,
            metrics=METRICS,
            method=method,
            rng=rng,
        )
        for m in METRICS:
            entry = result[m]
            chance, whole = entry.sampling_interval(0.95), entry.interval(0.95, kind="guaranteed")
            rows[m].append((entry.value, *chance, *whole, truth[m].value))
    return {m: np.array(values) for m, values in rows.items()}


def _chance(method: str, found: dict[str, np.ndarray]) -> list[Finding]:
    """Return how often intervals of chance hold the mean of the method's values.

    They say how a method's value varies, so its bias is no part of them: NDCG@100 of ``mle`` is 4 %
    too low here, and they hold the truth in 90 % of the simulations.
    """
    promise = "intervals of chance hold the mean of a method's values"
    return [
        coverage(promise, f"{method} {m}", rows[:, 1], rows[:, 2], rows[:, 0].mean(), 0.91)
        for m, rows in found.items()
    ]


def _whole(method: str, found: dict[str, np.ndarray]) -> list[Finding]:
    promise = "intervals cover the truth where the sample resolves"
    return [
        coverage(promise, f"{method} {m}", rows[:, 3], rows[:, 4], rows[0, 5], 0.93)
        for m, rows in found.items()
    ]


@pytest.mark.parametrize("method", ["mle", "beta"])
def test_intervals_hold_what_they_promise_where_the_sample_resolves(method, ledger):
    found = _simulate(method, simulations(400))
    keep(ledger([*_chance(method, found), *_whole(method, found)]))


def test_bias_of_mle_is_small_where_the_sample_resolves(ledger):
    findings = [
        Finding(
            "the bias of mle is small where the sample resolves",
            metric,
            "relative bias",
            abs(rows[:, 0].mean() / rows[0, -1] - 1),
            0.05,
            False,
            len(rows),
        )
        for metric, rows in _simulate("mle", simulations(200)).items()
    ]
    keep(ledger(findings))


def test_auc_is_unbiased_even_naively(ledger):
    rows = _simulate("naive", simulations(200))["AUC"]
    promise = "AUC of the sample is that of the catalogue"
    keep(ledger([bias(promise, "naive", rows[:, 0], rows[0, -1], allowed=1e-3)]))


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_a_wrong_catalogue_size_fails_these_promises(ledger):
    """A planted error must be seen: with N off by a half, intervals no longer cover."""
    found = _simulate("mle", simulations(60), Told(items=int(1.5 * ITEMS)))
    findings = ledger(_whole("mle", found), planted="N half too large, whole intervals")
    with pytest.raises(BrokenPromiseError, match=r"Recall@100\): coverage"):
        keep(findings)


def test_users_counted_three_times_fail_these_promises(ledger):
    """A planted error must be seen: intervals of chance that are too narrow by a factor of 1.7."""
    found = _simulate("mle", simulations(60), Told(copies=3))
    findings = ledger(_chance("mle", found), planted="users counted three times")
    with pytest.raises(BrokenPromiseError, match=r"intervals of chance"):
        keep(findings)


# -- a small world in which errors are seen sharply ------------------------------------------------


@dataclass(frozen=True)
class SmallWorld:
    """Recommendations with ties, evaluated on samples, and what the estimator is told of it.

    Every user has 60 items at 15 scores, four items at each. The users are the same in every
    simulation, so all that varies is what is sampled and how ties fall.
    """

    sampled: int
    ties: str = "random"
    told_items: int = 60
    #: How many items the estimator is told were sampled, beyond those that were.
    told_more: int = 0

    items = 60
    users = 1500
    alike = 4
    metrics = parse_all(["Recall@8", "Recall@20", "NDCG@20", "AUC"])

    def findings(self, size: int) -> list[Finding]:
        """Return the bias of mle, and how often intervals hold the truth, in ``size`` samples."""
        values, limits = self._estimates(size)
        setting = f"{self.sampled} of {self.items} items sampled"
        promise = "mle is unbiased and intervals cover, from tied scores to metrics"
        found = []
        for column, (metric, truth) in enumerate(zip(self.metrics, self._truth(), strict=True)):
            where = f"{setting}, {metric}"
            found.append(bias(promise, where, values[:, column], truth, allowed=0.003))
            low, high = limits[:, column].T
            found.append(coverage(promise, where, low, high, truth, 0.9))
        return found

    def _estimates(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        scores, targets, _ = self._world()
        candidates = Candidates.check((np.arange(self.users), targets), self.items)
        scorer = Scorer(lambda users, items: scores[users[:, None], items])
        values, limits = [], []
        for seed in range(size):
            ranks = run(Fixed(self.sampled), scorer, candidates, ties=self.ties, rng=seed)[0].ranks
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsampleWarning)
                result = unsample.estimate(
                    ranks,
                    items=self.told_items,
                    sampled=self.sampled + self.told_more,
                    metrics=self.metrics,
                    method="mle",
                )
            values.append([entry.value for entry in result.entries])
            # How ties fall is chance too, which the interval for these users alone leaves out.
            limits.append([entry.interval(kind="guaranteed") for entry in result.entries])
        return np.array(values), np.array(limits)

    def _world(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scores, targets, and the best rank each target may have among its ties."""
        rng = np.random.default_rng(3)
        levels = self.items // self.alike
        plain = np.repeat(np.arange(levels, dtype=float), self.alike)
        scores = rng.permuted(np.tile(plain, (self.users, 1)), axis=1)
        level = levels - 1 - np.floor(levels * rng.beta(0.6, 1.6, self.users)).astype(int)
        targets = np.argmax(scores == level[:, None], axis=1)
        return scores, targets, (levels - 1 - level) * self.alike + 1

    def _truth(self) -> list[float]:
        """Return the metrics when every place among the ties is as likely as the others."""
        best = self._world()[2]
        places = best[:, None] + np.arange(self.alike)
        return [float(metric.weights(places, self.items).mean()) for metric in self.metrics]


#: How often the small world is sampled.
OFTEN = 60
HONEST = SmallWorld(sampled=20)


@pytest.mark.parametrize("sampled", [20, 200])
def test_from_tied_scores_to_metrics_nothing_is_biased(sampled, ledger):
    keep(ledger(replace(HONEST, sampled=sampled).findings(simulations(OFTEN))))


def _theta_off_by_one(monkeypatch):
    right = Law.log_pmf

    def wrong(self, sampled_rank, rank):
        return right(self, sampled_rank, np.minimum(np.asarray(rank, float) + 1.0, self.items))

    monkeypatch.setattr(Law, "log_pmf", wrong)
    return HONEST


PLANTED = {
    "theta = R/(N - 1) instead of (R - 1)/(N - 1)": _theta_off_by_one,
    "n items sampled instead of n - 1": lambda _: replace(HONEST, told_more=1),
    "optimistic ties instead of random ones": lambda _: replace(HONEST, ties="optimistic"),
    "pessimistic ties instead of random ones": lambda _: replace(HONEST, ties="pessimistic"),
    "N a tenth too large": lambda _: replace(HONEST, told_items=66),
    "N a tenth too small": lambda _: replace(HONEST, told_items=54),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_breaks_the_promise(error, monkeypatch, ledger):
    """The very check that the honest world passes must refuse the wrong ones."""
    findings = ledger(PLANTED[error](monkeypatch).findings(OFTEN), planted=error)
    with pytest.raises(BrokenPromiseError):
        keep(findings)
    assert any(finding.measure == "bias" and not finding.kept for finding in findings)


# -- real recommenders ----------------------------------------------------------------------------


def _cell_findings(promise: str, found: list[cells.Cell], *kinds: str) -> list[Finding]:
    return [
        Finding(
            promise,
            f"{cell.dataset} {cell.candidates} {cell.recommender}, {cell.sampled} sampled, stated "
            f"{cell.stated}, {cell.metric}",
            "coverage" if kind == "covered" else kind.replace("covered_", "coverage of "),
            getattr(cell, kind),
            0.93,
            True,
            cell.simulations,
        )
        for cell in found
        for kind in kinds
    ]


@pytest.mark.parametrize(
    ("dataset", "candidates", "recommender", "sampled"),
    list(
        itertools.product(
            ("ml-1m", "citeulike-a"), ("unseen", "all"), ("ease", "itemknn", "als"), (99, 499)
        )
    ),
)
def test_intervals_cover_the_truth_of_real_recommenders(
    dataset, candidates, recommender, sampled, ledger
):
    """Every metric and K, with nothing said about the candidates: at least 93 of 100."""
    found = cells.simulate(dataset, candidates, recommender, sampled, None, simulations(400))
    promise = "intervals cover the metrics of real recommenders"
    keep(ledger(_cell_findings(promise, found, "covered", "covered_these", "covered_bounds")))


@pytest.mark.parametrize(
    ("dataset", "recommender"),
    list(
        itertools.product(("ml-1m", "citeulike-a", "pinterest-20", "yelp"), ("multivae", "neumf"))
    ),
)
@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_what_is_truly_said_keeps_the_promise(dataset, recommender, candidates, ledger):
    """Rank sets whose intervals were not looked at when shapes were chosen; their slopes were."""
    found = cells.simulate(dataset, candidates, recommender, 99, candidates, simulations(50))
    promise = "intervals cover when it is truly said what became of seen items"
    keep(ledger(_cell_findings(promise, found, "covered")))


def _covered(items_factor: float) -> list[Finding]:
    truth = load_ranks("ml-1m", "ease", candidates="all")
    exact = unsample.exact(truth.ranks, items=truth.items, metrics="Recall@100")
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        drawn = draw_sampled_ranks(truth.ranks, items=truth.items, sampled=499, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = unsample.estimate(
                drawn,
                items=int(truth.items[0] * items_factor),
                sampled=499,
                metrics="Recall@100",
            )
        found.append(result["Recall@100"].interval(kind="guaranteed"))
    low, high = np.array(found).T
    promise = "intervals hold the truth of ease on ml-1m"
    value = exact["Recall@100"].value
    return [coverage(promise, "499 sampled, Recall@100", low, high, value, 0.93)]


def test_a_wrong_model_fails_the_promise_of_intervals(ledger):
    keep(ledger(_covered(1.0)))
    wrong = ledger(_covered(1.4), planted="N 40 % too large, intervals of ease on ml-1m")
    with pytest.raises(BrokenPromiseError):
        keep(wrong)
    assert wrong[0].value < 0.5


@pytest.mark.parametrize("sampled", [99, 499])
@pytest.mark.parametrize("candidates", ["unseen", "all"])
@pytest.mark.parametrize("dataset", ["ml-1m", "citeulike-a"])
def test_verdicts_are_right(dataset, candidates, sampled, ledger):
    """What `compare` calls is right; what chance alone would call is not, where K is blind."""
    for stated in cells.TRUE_STATEMENTS[candidates]:
        tally = cells.tally(dataset, candidates, sampled, stated, simulations(5))
        setting = f"{dataset} {candidates}, {sampled} sampled, stated {stated or 'nothing'}"
        called = max(tally.called, 1)
        keep(
            ledger(
                [
                    Finding(
                        "verdicts of compare are right",
                        setting,
                        "share of wrong verdicts",
                        tally.wrong / called,
                        0.07,
                        False,
                        tally.called,
                    )
                ]
            )
        )
        if (dataset, candidates, sampled) == ("citeulike-a", "all", 99):
            planted = cells.tally(dataset, candidates, sampled, stated, simulations(5), alike=True)
            assert planted.wrong > 0.1 * planted.called, planted
