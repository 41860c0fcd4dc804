"""The prior: against brute force, kinds and components, learning, files."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unsample.counts import RankCounts
from unsample.errors import FileError, InputError
from unsample.lab import load_ranks
from unsample.likelihood import CondensedCells
from unsample.likelihood._condensed_cells import _condensed_ranges
from unsample.metrics import Metric, parse, parse_all
from unsample.posterior import Cloud, Prior, shipped
from unsample.posterior._basis import shapes_on
from unsample.posterior._components import SCALES, components_of
from unsample.posterior._modes import fits_of, strata_to_fit
from unsample.sampling import SamplingModel, bin_weights

METRICS = parse_all(["NDCG@5", "Recall@5", "Recall@1"])
ITEMS, SAMPLED = 2000, 99


@cache
def real() -> RankCounts:
    """Return sampled ranks of a recommender."""
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    return seen(full.ranks, int(np.max(full.items)), SAMPLED)


def seen(ranks: np.ndarray, items: int, sampled: int, *, rng: int = 0) -> RankCounts:
    drawn = SamplingModel(items, sampled).draw(ranks, rng=rng)
    return RankCounts.from_ranks(drawn, items=items, sampled=sampled)


def ranks_like(items: int, size: int, slope: float, seed: int = 0) -> np.ndarray:
    ranks = np.arange(1, items + 1)
    mass = ranks**-slope
    return np.random.default_rng(seed).choice(ranks, size, p=mass / mass.sum())


def _width(cloud: Cloud, metric: Metric) -> float:
    low, high = cloud.metric(metric).interval()
    return float(np.log(high / low))


def zipf(size: int, rng: np.random.Generator) -> np.ndarray:
    weights = 1.0 / (np.arange(1, ITEMS + 1) + 5.0)
    return rng.choice(np.arange(1, ITEMS + 1), size=size, p=weights / weights.sum())


# -- against brute force --------------------------------------------------------------------------


def test_modes_are_where_weighted_curves_have_their_mass() -> None:
    """Curves drawn from one component, weighted by their likelihood, have this value and width."""
    rng = np.random.default_rng(3)
    counts = seen(zipf(80, rng), ITEMS, SAMPLED, rng=3)
    cells = CondensedCells.of(counts)
    (component, *_) = components_of(shipped().learned["unseen"], "unseen")
    (fit,) = fits_of(cells, [component])
    (mode,), (stratum,) = fit.modes, cells.strata
    (fitted,) = strata_to_fit(cells)
    drawn = component.mean + rng.standard_normal((60_000, len(component.mean))) @ component.root
    exponent = drawn @ shapes_on(stratum.grid).T + np.log(stratum.grid.width)
    mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    logs = fitted.targets * (np.log(mass @ fitted.likelihood.T) @ fitted.shares)
    weight = np.exp(logs - logs.max())
    evidence = float(np.log(weight.mean()) + logs.max())
    weight /= weight.sum()
    assert 1.0 / (weight**2).sum() > 200
    assert mode.log_evidence == pytest.approx(evidence, abs=0.3)
    curves = (
        mode.coefficients
        + rng.standard_normal((4000, len(component.mean))) @ np.linalg.cholesky(mode.inverse).T
    )
    near = mode.masses(curves)
    for name in ("Recall@50", "NDCG@10"):
        of_metric = bin_weights(parse(name), stratum.grid, ITEMS)
        expected = np.log(mass @ of_metric)
        mean = float(weight @ expected)
        error = float(np.sqrt(weight @ (expected - mean) ** 2))
        found = np.log(near @ of_metric)
        assert found.mean() == pytest.approx(mean, abs=0.3 * error)
        assert found.std() == pytest.approx(error, rel=0.25)


# -- kinds, sizes, and whether it fits ------------------------------------------------------------


def _kinds(counts: RankCounts, prior: Prior, protocol: str) -> tuple[str, ...]:
    return Cloud.of(counts, prior, protocol=protocol).fitted.kinds


def test_kinds_are_told_apart_by_what_is_stated():
    counts = seen(ranks_like(1000, 2000, 0.8), 1000, 50)
    assert _kinds(counts, shipped(), "unseen") == ("unseen",)
    assert _kinds(counts, shipped(), "all") == ("pushed",)
    assert _kinds(counts, shipped(), "graph") == ("graph",)
    assert _kinds(counts, shipped().only("all"), "all") == ("all",)
    with pytest.raises(InputError, match="kind must be"):
        shipped().only("sessions")


def test_kinds_are_mixed_by_their_evidence_and_within_a_kind_components_are():
    likely = {"unseen": 0.5, "pushed": 0.3, "repeats": 0.2}
    fitted = Cloud.of(real(), shipped()).fitted
    logs = np.array([fit.log_evidence for fit in fitted.components])
    kinds = np.array([fit.component.kind for fit in fitted.components])
    of_kind = {kind: np.logaddexp.reduce(logs[kinds == kind]) for kind in likely}
    # Evidence makes a kind less likely by the factor exp(2), and by no more.
    behind = {kind: max(each - max(of_kind.values()), -2.0) for kind, each in of_kind.items()}
    weight = {kind: share * np.exp(behind[kind]) for kind, share in likely.items()}
    for kind, each in weight.items():
        found = fitted.weights[kinds == kind]
        assert found.sum() == pytest.approx(each / sum(weight.values()), rel=1e-9)
        ratios = np.log(found / found.sum())
        assert ratios == pytest.approx(logs[kinds == kind] - of_kind[kind], abs=1e-9)
    assert fitted.weights.sum() == pytest.approx(1.0)
    with pytest.raises(InputError, match="protocol must be one of graph, got 'repeats'"):
        shipped().only("graph").possible("repeats")


@pytest.mark.parametrize("kind", ["unseen", "all", "repeats", "graph"])
def test_components_are_distributions_with_the_prior_weights_of_one(kind):
    found = components_of(shipped().learned[kind], kind)
    assert [each.scale for each in found if each.top == "smooth"] == list(SCALES)
    assert sum(each.prior_weight for each in found) == pytest.approx(1.0)
    for each in found:
        for root in (each.root, each.common_root, each.own_root, each.error_root):
            assert root == pytest.approx(root.T, abs=1e-9)
        both = each.common_root @ each.common_root + each.own_root @ each.own_root
        assert each.error_root @ each.error_root == pytest.approx(both, abs=1e-9)


def test_unusual_data_have_larger_scales():
    """A curve that the prior hardly allows is given to components of a larger scale."""
    usual = Cloud.of(real(), shipped(), protocol="unseen").fitted
    ranks = ranks_like(2000, 20_000, 0.9)
    ranks[:8000] = 40
    odd = Cloud.of(seen(ranks, 2000, 99), shipped(), protocol="unseen").fitted
    mean_scale = [
        sum(
            weight * fit.component.scale
            for weight, fit in zip(each.weights, each.components, strict=True)
        )
        for each in (usual, odd)
    ]
    assert mean_scale[0] < 1.5 < mean_scale[1]


@pytest.mark.parametrize(
    ("protocol", "possible"),
    [
        (None, ("unseen", "pushed", "repeats")),
        ("unseen", ("unseen",)),
        ("all", ("pushed",)),
        ("repeats", ("repeats",)),
        ("graph", ("graph",)),
    ],
)
def test_a_protocol_leaves_these_kinds(protocol, possible):
    assert shipped().possible(protocol) == possible


@pytest.mark.parametrize("n", [3, 31, 3000])
def test_sampled_ranks_stand_together_within_half_a_standard_error(n):
    low, high = _condensed_ranges(*np.array([[1, n], [1, n]]), n)
    assert (low[0], high[-1]) == (1, n)
    assert (low[1:] == high[:-1] + 1).all()
    assert (low[:10] == np.arange(1, min(n, 10) + 1)).all()
    # The angle arcsin(sqrt(theta)) has the standard error 1/(2 sqrt(n)) everywhere.
    angle = np.arcsin(np.sqrt(np.append(low - 1, n) / n))
    assert (np.diff(angle)[high > low] <= 2 * 0.25 / np.sqrt(n)).all()
    # Ranges as they came are kept, and gaps are filled.
    mixed = _condensed_ranges(np.array([1, 2]), np.array([1, 3]), 4)
    assert np.transpose(mixed).tolist() == [[1, 1], [2, 3], [4, 4]]


# -- learning and files ---------------------------------------------------------------------------


def test_a_history_of_ones_own_makes_the_next_model_surer():
    ranks = [ranks_like(3000, 8000, 1.25, seed=at) for at in range(4)]
    own = Prior.learn(ranks[:3], items=3000)
    counts = seen(ranks[3], 3000, 20)
    plain, better = (Cloud.of(counts, prior, protocol="unseen") for prior in (shipped(), own))
    for metric in METRICS:
        truth = metric.weights(ranks[3], 3000).mean()
        assert _width(plain, metric) > _width(better, metric)
        for cloud in (plain, better):
            assert abs(np.log(cloud.metric(metric).value / truth)) < 0.1
        low, high = better.metric(metric).interval()
        assert low < truth < high
    with pytest.raises(InputError, match="items must be"):
        Prior.learn(ranks[:3], items=[3000])
    with pytest.raises(InputError, match="at least one"):
        Prior.fit([])


def test_a_prior_reads_back_as_it_was_written(tmp_path):
    path = tmp_path / "own.npz"
    shipped().save(path)
    counts = seen(ranks_like(400, 300, 0.7), 400, 20)
    one, two = (
        Cloud.of(counts, prior).metric("NDCG@5").value for prior in (shipped(), Prior.load(path))
    )
    assert one == pytest.approx(two, rel=1e-6)
    assert Prior.load(path).note == shipped().note
    for kind, learned in shipped().learned.items():
        assert Prior.load(path).learned[kind].factors == learned.factors
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FileError):
        Prior.load(path)
    np.savez(path, about=np.frombuffer(b'{"format": "another"}', np.uint8))
    with pytest.raises(FileError, match="unsample prior"):
        Prior.load(path)
