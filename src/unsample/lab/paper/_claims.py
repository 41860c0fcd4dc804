"""What the paper's text says about its tables and figures, as checks on our own.

The sentences stand in ``claims.toml``, each with the check below that judges it. The paper judges
by bias. Every claim about accuracy is judged by root mean square error as well, which is what a
single evaluation suffers. Claims that are not about accuracy (spreads, winners) have one verdict,
given under both; claims about mean curves have none by RMSE.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from unsample._checks import FloatArray
from unsample.lab.paper._tables import Row, Rows

_NEW = ("MLE", "WMLE", "MES")
_BV = ("BV 0.1", "BV 0.01")
#: How near, relative to each other, two estimators are still called comparable.
_COMPARABLE = 0.1
#: How near our exact Recall@10 must be to the printed one, and then the spreads and the ratios.
_NEAR_EXACT, _NEAR_STD, _NEAR_RATIO = 0.15, 0.2, 0.02


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, by bias and by RMSE, and the numbers behind that."""

    by_bias: bool | None
    by_rmse: bool | None
    detail: str

    @classmethod
    def plain(cls, holds: bool, detail: str) -> Verdict:
        """Return a verdict that has nothing to do with how errors are measured."""
        return cls(holds, holds, detail)


_MISSING = Verdict(None, None, "This run lacks the data sets, recommenders or estimators for it.")


@dataclass(frozen=True)
class Evidence:
    """The tables of a run, cut down to one set of candidates."""

    tables: Mapping[str, Rows]
    candidates: str

    def rows(self, table: str, **where: object) -> list[Row]:
        """Return the rows of a table that have these values."""
        wanted = {"candidates": self.candidates, **where}
        return [r for r in self.tables[table] if all(r[key] == wanted[key] for key in wanted)]

    def contests(self, datasets: Iterable[str], labels: Iterable[str]) -> list[dict[str, Row]]:
        """Return accuracy rows by estimator, one for each table row of these data sets.

        There are none unless every data set was run, with all the estimators ``labels``.
        """
        found: list[dict[str, Row]] = []
        for dataset in datasets:
            groups: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
            for row in self.rows("accuracy", dataset=dataset):
                groups[row["recommender"], row["metric"]][row["estimator"]] = row
            if not groups or not all(set(labels) <= set(group) for group in groups.values()):
                return []
            found += groups.values()
        return found

    def curves(
        self, dataset: str, labels: Iterable[str] = ()
    ) -> dict[tuple[str, int], dict[str, FloatArray]]:
        """Return the CDFs of a data set by recommender and sample size, then by estimator.

        There are none unless every figure has all the estimators ``labels``.
        """
        found: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in self.rows("distributions", dataset=dataset):
            found[row["recommender"], row["sampled"]][row["estimator"]].append(row["cdf"])
        if not all(set(labels) <= set(curves) for curves in found.values()):
            return {}
        return {
            key: {label: np.array(values) for label, values in curves.items()}
            for key, curves in found.items()
        }


Check = Callable[..., Verdict | None]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, and how it is checked."""

    id: str
    text: str
    where: str
    check: Check
    datasets: tuple[str, ...]


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of the paper, in its order."""
    text = files("unsample.lab.paper").joinpath("claims.toml").read_text(encoding="utf-8")
    return tuple(
        Claim(**{**table, "check": _CHECKS[table["check"]], "datasets": tuple(table["datasets"])})
        for table in tomllib.loads(text)["claim"]
    )


def claim_rows(tables: Mapping[str, Rows]) -> Iterator[Row]:
    """Yield every claim with its verdict, among all items as in the paper, then among unseen."""
    for candidates in sorted({row["candidates"] for row in tables["accuracy"]}):
        evidence = Evidence(tables, candidates)
        as_printed = candidates == "all"
        for claim in claims():
            verdict = claim.check(evidence, *claim.datasets)
            if verdict is None and not as_printed:
                continue
            verdict = verdict or _MISSING
            other = "" if as_printed else f"candidates: {candidates}"
            yield {
                "id": claim.id + (f".{candidates}" if other else ""),
                "claim": claim.text + (f" ({other})" if other else ""),
                "where": claim.where + (f"; {other}, not the paper's" if other else ""),
                "holds_by_bias": verdict.by_bias,
                "holds_by_rmse": verdict.by_rmse,
                "detail": verdict.detail,
            }


# -- accuracy -----------------------------------------------------------------------------------


def _error(row: Row, by: str) -> float:
    return abs(float(row[by]))


def _order(contest: Mapping[str, Row], by: str) -> list[str]:
    """Return the estimators of a table row, the most accurate first."""
    return sorted(contest, key=lambda label: _error(contest[label], by))


def _judged(cases: Sized, judge: Callable[[str], tuple[bool, str]], text: str) -> Verdict | None:
    """Return verdicts by bias and by RMSE with a text that gives the reasons; None of no cases."""
    if not cases:
        return None
    (by_bias, bias), (by_rmse, rmse) = judge("bias"), judge("rmse")
    return Verdict(by_bias, by_rmse, text.format(rows=len(cases), bias=bias, rmse=rmse))


def _often_in_first_two(evidence: Evidence, dataset: str) -> Verdict | None:
    contests = evidence.contests([dataset], ("MLE", "MES", *_BV))

    def judge(by: str) -> tuple[bool, str]:
        mle, mes = (sum(x in _order(c, by)[:2] for c in contests) for x in ("MLE", "MES"))
        shown = f"MLE is first or second in {mle} and MES in {mes} of {len(contests)} rows"
        return 2 * min(mle, mes) > len(contests), shown

    return _judged(contests, judge, "By bias {bias}; by RMSE {rmse}.")


def _cls_is_worst(evidence: Evidence, dataset: str) -> Verdict | None:
    contests = evidence.contests([dataset], ("CLS", "MLE"))

    def judge(by: str) -> tuple[bool, str]:
        worst = sum(_order(contest, by)[-1] == "CLS" for contest in contests)
        return 2 * worst > len(contests), str(worst)

    text = "CLS is last in {bias} of {rows} rows by bias and in {rmse} by RMSE."
    return _judged(contests, judge, text)


def _wmle_leads(evidence: Evidence, dataset: str) -> Verdict | None:
    contests = evidence.contests([dataset], (*_NEW, *_BV))

    def judge(by: str) -> tuple[bool, str]:
        counts = {label: sum(label in _order(c, by)[:2] for c in contests) for label in contests[0]}
        return counts["WMLE"] == max(counts.values()), _listed(counts)

    text = "First or second in {rows} rows, by bias {bias}; by RMSE {rmse}."
    return _judged(contests, judge, text)


def _each_has_its_rows(evidence: Evidence, dataset: str) -> Verdict | None:
    labels = ("MLE", "MES", *_BV)
    contests = evidence.contests([dataset], labels)

    def judge(by: str) -> tuple[bool, str]:
        best = dict.fromkeys(labels, 0)
        for contest in contests:
            best[min(labels, key=lambda label: _error(contest[label], by))] += 1
        bv = best["BV 0.1"] + best["BV 0.01"]
        return min(best["MLE"], best["MES"], bv) > 0, _listed(best)

    text = "Best among these four in {rows} rows, by bias {bias}; by RMSE {rmse}."
    return _judged(contests, judge, text)


def _better_than_bv(evidence: Evidence, *datasets: str) -> Verdict | None:
    contests = evidence.contests(datasets, ("MLE", "MES", *_BV))

    def judge(by: str) -> tuple[bool, str]:
        wins = {
            f"{new} beats {bv} in": sum(_error(c[new], by) < _error(c[bv], by) for c in contests)
            for new in ("MLE", "MES")
            for bv in _BV
        }
        return 2 * min(wins.values()) > len(contests), _listed(wins)

    return _judged(contests, judge, "Of {rows} rows, by bias {bias}; by RMSE {rmse}.")


def _vary_more_than_bv(evidence: Evidence) -> Verdict | None:
    datasets = sorted({row["dataset"] for row in evidence.rows("accuracy")})
    contests = evidence.contests(datasets, (*_NEW, *_BV))
    if not contests:
        return None
    more = sum(
        min(c[new]["std"] for new in _NEW) > max(c[bv]["std"] for bv in _BV) for c in contests
    )
    times = np.median([c["MLE"]["std"] / c["BV 0.01"]["std"] for c in contests])
    return Verdict.plain(
        2 * more > len(contests),
        f"MLE, WMLE and MES all vary more than both BV in {more} of {len(contests)} rows; the "
        f"median ratio of MLE's std to that of BV 0.01 is {times:.2f}.",
    )


# -- winners ------------------------------------------------------------------------------------


def _correct(evidence: Evidence, dataset: str) -> dict[str, int] | None:
    totals: dict[str, int] = defaultdict(int)
    for row in evidence.rows("winners", dataset=dataset):
        totals[row["estimator"]] += row["correct"]
    return dict(totals) if {*_NEW, *_BV} <= set(totals) else None


def _wmle_picks_winners(evidence: Evidence, dataset: str) -> Verdict | None:
    totals = _correct(evidence, dataset)
    if totals is None:
        return None
    detail = "Correct winners over all K and metrics: " + _listed(totals) + "."
    return Verdict.plain(totals["WMLE"] == max(totals.values()), detail)


def _mle_and_mes_pick_as_well(evidence: Evidence, dataset: str) -> Verdict | None:
    totals = _correct(evidence, dataset)
    if totals is None:
        return None
    mle, mes, bv = totals["MLE"], totals["MES"], totals["BV 0.01"]
    comparable = abs(mle - mes) <= _COMPARABLE * max(mle, mes)
    detail = f"Correct winners over all K and metrics: MLE {mle}, MES {mes}, BV 0.01 {bv}."
    return Verdict.plain(comparable and min(mle, mes) > bv, detail)


# -- curves -------------------------------------------------------------------------------------


def _off(curve: FloatArray, exact: FloatArray) -> float:
    """Return the mean distance of a curve from the exact one, relative to the exact mean."""
    return float(np.abs(curve - exact).mean() / exact.mean())


def _bv_misses_the_cdf(evidence: Evidence, dataset: str) -> Verdict | None:
    labels = ("BV 0.1", "MLE", "MES")
    parts, holds = [], True
    for (recommender, _), curves in evidence.curves(dataset, labels).items():
        off = {label: _off(curves[label], curves["exact"]) for label in labels}
        holds &= off["BV 0.1"] > max(off["MLE"], off["MES"])
        shown = ", ".join(f"{label} {100 * value:.1f} %" for label, value in off.items())
        parts.append(f"{recommender}: {shown}")
    detail = "Mean distance from the exact CDF, " + "; ".join(parts) + "."
    return Verdict(holds, None, detail) if parts else None


def _wmle_lies_higher(evidence: Evidence, dataset: str) -> Verdict | None:
    parts, holds = [], True
    for (recommender, _), curves in evidence.curves(dataset, _NEW).items():
        mle, wmle, mes = (float(curves[label].mean()) for label in ("MLE", "WMLE", "MES"))
        holds &= wmle > max(mle, mes) and abs(mle - mes) <= _COMPARABLE * max(mle, mes)
        parts.append(f"{recommender}: WMLE/MLE {wmle / mle:.3f}, MES/MLE {mes / mle:.3f}")
    return Verdict(holds, None, f"Ratios of the mean CDF, {'; '.join(parts)}.") if parts else None


def _aggregates_are_better(evidence: Evidence, dataset: str) -> Verdict | None:
    parts, holds = [], True
    for (recommender, _), curves in evidence.curves(dataset).items():
        exact = curves["exact"]
        for label in [name for name in curves if name != "exact"]:
            single = _off(np.diff(curves[label], prepend=0.0), np.diff(exact, prepend=0.0))
            summed = _off(curves[label], exact)
            holds &= single > 2.0 * summed
            parts.append(f"{recommender} {label} {100 * single:.0f} % against {100 * summed:.0f} %")
    detail = "Mean distance from the exact P(R) against that of the CDF: " + ", ".join(parts) + "."
    return Verdict(holds, None, detail) if parts else None


def _curves_sharpen(evidence: Evidence, dataset: str) -> Verdict | None:
    figures = evidence.curves(dataset)
    if len(figures) < 2:
        return None
    (small, few), (large, many) = sorted(figures.items(), key=lambda entry: entry[0][1])
    parts, holds = [], True
    for label in [name for name in few if name != "exact" and name in many]:
        before, after = _off(few[label], few["exact"]), _off(many[label], many["exact"])
        holds &= after < before
        parts.append(f"{label} {100 * before:.1f} % to {100 * after:.1f} %")
    detail = (
        f"Mean distance from the exact CDF of {small[0]} with {small[1]} and with {large[1]} "
        "sampled items: " + ", ".join(parts) + "."
    )
    return Verdict(holds, None, detail)


def _sweep_sharpens(evidence: Evidence) -> Verdict | None:
    series: dict[tuple[str, ...], dict[int, Row]] = defaultdict(dict)
    for row in evidence.rows("sweep"):
        key = (row["dataset"], row["recommender"], row["metric"], row["estimator"])
        series[key][row["sampled"]] = row
    if not series or any(len(sizes) < 2 for sizes in series.values()):
        return None

    def judge(by: str) -> tuple[bool, str]:
        better: dict[str, list[bool]] = defaultdict(list)
        for key, sizes in sorted(series.items(), key=lambda entry: entry[0][3]):
            first, last = sizes[min(sizes)], sizes[max(sizes)]
            better[key[3]].append(_error(last, by) < _error(first, by))
        shares = {label: float(np.mean(found)) for label, found in better.items()}
        shown = ", ".join(f"{label} in {100 * share:.0f} %" for label, share in shares.items())
        return min(shares.values()) > 0.5, shown

    tried = sorted({size for sizes in series.values() for size in sizes})
    text = f"More accurate with {tried[-1]} than with {tried[0]} sampled items, "
    return _judged(series, judge, text + "by bias {bias}; by RMSE {rmse} of the series.")


# -- the printed numbers ------------------------------------------------------------------------


def _near_recommenders(evidence: Evidence, dataset: str) -> set[str]:
    """Return the recommenders whose exact Recall@10 is near the printed one."""
    return {
        row["recommender"]
        for row in evidence.rows("accuracy", dataset=dataset, metric="Recall")
        if row["paper_exact"] and abs(row["exact"] / row["paper_exact"] - 1) <= _NEAR_EXACT
    }


def _spreads_agree(evidence: Evidence, dataset: str) -> Verdict | None:
    near = _near_recommenders(evidence, dataset)
    ratios = {
        (row["recommender"], row["metric"], row["estimator"]): row["std"] / row["paper_std"]
        for row in evidence.rows("accuracy", dataset=dataset)
        if row["recommender"] in near and row["estimator"] in ("CLS", *_BV, "MLE")
    }
    if not ratios:
        return None
    good = sum(abs(ratio - 1) <= _NEAR_STD for ratio in ratios.values())
    worst = max(ratios, key=lambda key: abs(ratios[key] - 1))
    return Verdict.plain(
        good == len(ratios),
        f"{good} of {len(ratios)} standard deviations are within 20 % of the printed ones "
        f"({', '.join(sorted(near))}); the farthest is {' '.join(worst)}, {ratios[worst]:.2f} "
        "times the printed one.",
    )


def _wmle_ratios_agree(evidence: Evidence, dataset: str) -> Verdict | None:
    near = _near_recommenders(evidence, dataset)
    gaps = [
        abs(c["WMLE"]["mean"] / c["MLE"]["mean"] - c["WMLE"]["paper_mean"] / c["MLE"]["paper_mean"])
        for c in evidence.contests([dataset], ("MLE", "WMLE"))
        if c["MLE"]["recommender"] in near
    ]
    if not gaps:
        return None
    return Verdict.plain(
        max(gaps) <= _NEAR_RATIO,
        f"The ratio WMLE/MLE differs from the printed one by at most {max(gaps):.3f} in "
        f"{len(gaps)} rows ({', '.join(sorted(near))}).",
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{label} {count}" for label, count in counts.items())


_CHECKS: Mapping[str, Check] = {
    check.__name__.removeprefix("_"): check
    for check in (
        _often_in_first_two,
        _cls_is_worst,
        _wmle_leads,
        _each_has_its_rows,
        _better_than_bv,
        _vary_more_than_bv,
        _wmle_picks_winners,
        _mle_and_mes_pick_as_well,
        _bv_misses_the_cdf,
        _wmle_lies_higher,
        _aggregates_are_better,
        _curves_sharpen,
        _sweep_sharpens,
        _spreads_agree,
        _wmle_ratios_agree,
    )
}
