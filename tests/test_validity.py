"""Statistical promises, by simulation. ``make prove`` runs them and writes out/prove.md.

The same checks judge right programs and wrong ones: with an error planted, they must refuse.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import unsample
from tests.promises import BrokenPromiseError, Finding, bias, coverage, keep, simulations
from unsample.counts import ModelCounts, Targets
from unsample.designs import Fixed, run
from unsample.metrics import parse_all
from unsample.posterior import CAUTION
from unsample.questions.compare import joint as _joint
from unsample.sampling import SamplingModel
from unsample.scoring import Candidates, PairScores

pytestmark = [
    pytest.mark.validity,
    pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning"),
]


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
        """Return the bias of mle, and how often bounds hold the truth, in ``size`` samples."""
        values, limits = self._estimates(size)
        setting = f"{self.sampled} of {self.items} items sampled"
        promise = "mle is unbiased and bounds hold, from tied scores to metrics"
        found = []
        for column, (metric, truth) in enumerate(zip(self.metrics, self._truth(), strict=True)):
            where = f"{setting}, {metric}"
            found.append(bias(promise, where, values[:, column], truth, allowed=0.003))
            found.append(coverage(promise, where, *limits[:, column].T, truth, 0.9))
        return found

    def _estimates(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        scores, targets, _ = self._world()
        candidates = Candidates.check((np.arange(self.users), targets), self.items)
        scorer = PairScores(lambda users, items: scores[users, items])
        values, limits = [], []
        for seed in range(size):
            ranks = run(Fixed(self.sampled), [scorer], candidates, ties=self.ties, rng=seed)[
                0
            ].ranks
            result = unsample.estimate(
                ranks,
                items=self.told_items,
                sampled=self.sampled + self.told_more,
                metrics=self.metrics,
                method="mle",
                prior=None,
            )
            values.append([entry.value for entry in result.entries])
            limits.append([entry.bounds() for entry in result.entries])
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


@pytest.mark.parametrize("sampled", [20, 59])
def test_from_tied_scores_to_metrics_nothing_is_biased(sampled, ledger):
    keep(ledger(replace(HONEST, sampled=sampled).findings(simulations(OFTEN))))


def _theta_off_by_one(monkeypatch):
    right = SamplingModel.log_pmf

    def wrong(self, sampled_rank, rank):
        return right(self, sampled_rank, np.minimum(np.asarray(rank, float) + 1.0, self.items))

    monkeypatch.setattr(SamplingModel, "log_pmf", wrong)
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


# -- equal models ---------------------------------------------------------------------------------


def _verdicts(size: int) -> list[Finding]:
    """Return how often two models of one P(R) are told apart, by whether ranks are alike."""
    items, sampled, users, found = 2000, 99, 400, []
    weights = 1.0 / (np.arange(1, items + 1) + 5.0)
    for alike in (0.0, 0.8):
        called = 0
        for seed in range(size):
            rng = np.random.default_rng([seed, int(10 * alike)])
            first, other = 1 + rng.choice(items, size=(2, users), p=weights / weights.sum())
            second = np.where(rng.random(users) < alike, first, other)
            drawn = SamplingModel(items, sampled).draw(np.stack([first, second]), rng=rng)
            both = {
                name: Targets(ranks, items=items, sampled=sampled)
                for name, ranks in zip("ab", drawn, strict=True)
            }
            models = ModelCounts.of_targets(both)
            # At K = 200 hardly anything of the prior is left: this is the hardest case.
            result = unsample.compare(models, protocol="unseen", metrics="Recall@200")
            called += result.winner("Recall@200") is not None
        limit = 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / size)
        promise = "equal models get a verdict in at most 5 %"
        setting = f"{alike:.0%} of the users' ranks alike"
        found.append(Finding(promise, setting, "verdicts", called / size, limit, False, size))
    return found


def test_equal_models_seldom_get_a_verdict(ledger):
    keep(ledger(_verdicts(simulations(200))))


def test_users_that_count_for_three_break_the_promise(monkeypatch, ledger):
    monkeypatch.setattr(_joint, "CAUTION", CAUTION / 3.0)
    with pytest.raises(BrokenPromiseError):
        keep(ledger(_verdicts(50), planted="users count for three"))
