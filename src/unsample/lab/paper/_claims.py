"""What the paper's text says about its tables and figures, as checks on our own.

The paper judges by bias. Every claim about accuracy is judged by root mean square error as well,
which is what a single evaluation suffers. Claims that are not about accuracy (spreads, winners)
have one verdict, given under both; claims about mean curves have none by RMSE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.lab.experiment._evidence import Evidence, Verdict
from unsample.lab.experiment._results import Row, Rows

__all__ = ["CLAIMS", "Claim", "claim_rows"]

_NEW = ("MLE", "WMLE", "MES")
_BV = ("BV 0.1", "BV 0.01")
#: How near, relative to each other, two estimators are still called comparable.
_COMPARABLE = 0.1


_MISSING = Verdict(None, None, "This run lacks the data sets, recommenders or estimators for it.")


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, and how it is checked."""

    id: str
    text: str
    where: str
    check: Callable[[Evidence], Verdict | None]


def claim_rows(tables: Mapping[str, Rows]) -> Iterator[Row]:
    """Yield every claim with its verdict, on the paper's protocol and then on the everyday one."""
    protocols = {row["protocol"] for row in tables["accuracy"]}
    for protocol in sorted(protocols, reverse=True):
        evidence = Evidence(tables, protocol)
        everyday = protocol != "paper"
        for claim in CLAIMS:
            verdict = claim.check(evidence)
            if verdict is None and everyday:
                continue
            verdict = verdict or _MISSING
            yield {
                "id": claim.id + (f".{protocol}" if everyday else ""),
                "claim": claim.text + (f" ({protocol} protocol)" if everyday else ""),
                "where": claim.where
                + (f"; {protocol} protocol, not the paper's" if everyday else ""),
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


def _complete(contests: list[dict[str, Row]], labels: Iterable[str]) -> bool:
    return bool(contests) and all(set(labels) <= set(contest) for contest in contests)


def _often_in_first_two(dataset: str) -> Callable[[Evidence], Verdict | None]:
    def check(evidence: Evidence) -> Verdict | None:
        contests = evidence.contests(dataset)
        if not _complete(contests, ("MLE", "MES", *_BV)):
            return None
        holds, parts = {}, []
        for by in ("bias", "rmse"):
            first_two = {
                label: sum(label in _order(c, by)[:2] for c in contests) for label in ("MLE", "MES")
            }
            holds[by] = all(2 * count > len(contests) for count in first_two.values())
            parts.append(
                f"by {_spelt(by)} MLE is first or second in {first_two['MLE']} and MES in "
                f"{first_two['MES']} of {len(contests)} rows"
            )
        return Verdict(holds["bias"], holds["rmse"], _sentence("; ".join(parts)))

    return check


def _cls_is_worst(dataset: str) -> Callable[[Evidence], Verdict | None]:
    def check(evidence: Evidence) -> Verdict | None:
        contests = evidence.contests(dataset)
        if not _complete(contests, ("CLS", "MLE")):
            return None
        worst = {by: sum(_order(c, by)[-1] == "CLS" for c in contests) for by in ("bias", "rmse")}
        return Verdict(
            2 * worst["bias"] > len(contests),
            2 * worst["rmse"] > len(contests),
            f"CLS is last in {worst['bias']} of {len(contests)} rows by bias and in "
            f"{worst['rmse']} by RMSE.",
        )

    return check


def _wmle_leads(evidence: Evidence) -> Verdict | None:
    contests = evidence.contests("citeulike-a")
    if not _complete(contests, (*_NEW, *_BV)):
        return None
    holds, parts = {}, []
    for by in ("bias", "rmse"):
        counts = {label: sum(label in _order(c, by)[:2] for c in contests) for label in contests[0]}
        holds[by] = counts["WMLE"] == max(counts.values())
        parts.append(f"by {_spelt(by)} " + _listed(counts))
    detail = f"First or second in {len(contests)} rows, " + "; ".join(parts) + "."
    return Verdict(holds["bias"], holds["rmse"], detail)


def _each_has_its_rows(evidence: Evidence) -> Verdict | None:
    contests = evidence.contests("citeulike-a")
    labels = ("MLE", "MES", *_BV)
    if not _complete(contests, labels):
        return None
    holds, parts = {}, []
    for by in ("bias", "rmse"):
        best = dict.fromkeys(labels, 0)
        for contest in contests:
            best[min(labels, key=lambda label: _error(contest[label], by))] += 1
        bv = best["BV 0.1"] + best["BV 0.01"]
        holds[by] = min(best["MLE"], best["MES"], bv) > 0
        parts.append(f"by {_spelt(by)} " + _listed(best))
    detail = f"Best among these four in {len(contests)} rows, " + "; ".join(parts) + "."
    return Verdict(holds["bias"], holds["rmse"], detail)


def _better_than_bv(*datasets: str) -> Callable[[Evidence], Verdict | None]:
    def check(evidence: Evidence) -> Verdict | None:
        contests = [c for dataset in datasets for c in evidence.contests(dataset)]
        if not all(_complete(evidence.contests(d), ("MLE", "MES", *_BV)) for d in datasets):
            return None
        holds, parts = {}, []
        for by in ("bias", "rmse"):
            wins = {
                (new, bv): sum(_error(c[new], by) < _error(c[bv], by) for c in contests)
                for new in ("MLE", "MES")
                for bv in _BV
            }
            holds[by] = all(2 * count > len(contests) for count in wins.values())
            parts.append(
                f"by {_spelt(by)} "
                + ", ".join(f"{new} beats {bv} in {count}" for (new, bv), count in wins.items())
            )
        detail = f"Of {len(contests)} rows, " + "; ".join(parts) + "."
        return Verdict(holds["bias"], holds["rmse"], detail)

    return check


def _vary_more_than_bv(evidence: Evidence) -> Verdict | None:
    datasets = {row["dataset"] for row in evidence.rows("accuracy")}
    contests = [c for dataset in sorted(datasets) for c in evidence.contests(dataset)]
    if not _complete(contests, (*_NEW, *_BV)):
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


def _correct(evidence: Evidence) -> dict[str, int] | None:
    totals: dict[str, int] = defaultdict(int)
    for row in evidence.rows("winners", dataset="ml-1m"):
        totals[row["estimator"]] += row["correct"]
    return dict(totals) if {*_NEW, *_BV} <= set(totals) else None


def _wmle_picks_winners(evidence: Evidence) -> Verdict | None:
    totals = _correct(evidence)
    if totals is None:
        return None
    detail = "Correct winners over all K and metrics: " + _listed(totals) + "."
    return Verdict.plain(totals["WMLE"] == max(totals.values()), detail)


def _mle_and_mes_pick_as_well(evidence: Evidence) -> Verdict | None:
    totals = _correct(evidence)
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


def _bv_misses_the_cdf(evidence: Evidence) -> Verdict | None:
    figures = evidence.curves("ml-1m")
    if not figures or not all({"BV 0.1", "MLE", "MES"} <= set(c) for c in figures.values()):
        return None
    parts, holds = [], True
    for (recommender, _), curves in figures.items():
        off = {label: _off(curves[label], curves["exact"]) for label in ("BV 0.1", "MLE", "MES")}
        holds &= off["BV 0.1"] > max(off["MLE"], off["MES"])
        parts.append(
            f"{recommender}: " + ", ".join(f"{label} {value:.1%}" for label, value in off.items())
        )
    return Verdict(holds, None, "Mean distance from the exact CDF, " + "; ".join(parts) + ".")


def _wmle_lies_higher(evidence: Evidence) -> Verdict | None:
    figures = evidence.curves("ml-1m")
    if not figures or not all(set(_NEW) <= set(c) for c in figures.values()):
        return None
    parts, holds = [], True
    for (recommender, _), curves in figures.items():
        mle, wmle, mes = (float(curves[label].mean()) for label in ("MLE", "WMLE", "MES"))
        holds &= wmle > max(mle, mes) and abs(mle - mes) <= _COMPARABLE * max(mle, mes)
        parts.append(f"{recommender}: WMLE/MLE {wmle / mle:.3f}, MES/MLE {mes / mle:.3f}")
    return Verdict(holds, None, "Ratios of the mean CDF, " + "; ".join(parts) + ".")


def _aggregates_are_better(evidence: Evidence) -> Verdict | None:
    figures = evidence.curves("ml-1m")
    parts, holds = [], True
    for (recommender, _), curves in figures.items():
        exact = curves["exact"]
        for label in [name for name in curves if name != "exact"]:
            single = _off(np.diff(curves[label], prepend=0.0), np.diff(exact, prepend=0.0))
            summed = _off(curves[label], exact)
            holds &= single > 2.0 * summed
            parts.append(f"{recommender} {label} {single:.0%} against {summed:.0%}")
    if not parts:
        return None
    detail = "Mean distance from the exact P(R) against that of the CDF: " + ", ".join(parts) + "."
    return Verdict(holds, None, detail)


def _curves_sharpen(evidence: Evidence) -> Verdict | None:
    figures = evidence.curves("citeulike-a")
    if len(figures) < 2:
        return None
    (small, few), (large, many) = sorted(figures.items(), key=lambda entry: entry[0][1])
    parts, holds = [], True
    for label in [name for name in few if name != "exact" and name in many]:
        before, after = _off(few[label], few["exact"]), _off(many[label], many["exact"])
        holds &= after < before
        parts.append(f"{label} {before:.1%} to {after:.1%}")
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
    labels = sorted({key[3] for key in series})
    holds, parts = {}, []
    for by in ("bias", "rmse"):
        better = {
            label: _share(
                _error(sizes[max(sizes)], by) < _error(sizes[min(sizes)], by)
                for key, sizes in series.items()
                if key[3] == label
            )
            for label in labels
        }
        holds[by] = all(share > 0.5 for share in better.values())
        shown = ", ".join(f"{label} in {share:.0%}" for label, share in better.items())
        parts.append(f"by {_spelt(by)} {shown}")
    smallest, largest = (
        pick(size for sizes in series.values() for size in sizes) for pick in (min, max)
    )
    detail = (
        f"More accurate with {largest} than with {smallest} sampled items, "
        + "; ".join(parts)
        + " of the series."
    )
    return Verdict(holds["bias"], holds["rmse"], detail)


# -- the printed numbers ------------------------------------------------------------------------


def _near_recommenders(evidence: Evidence) -> set[str]:
    """Return the recommenders of ml-1m whose exact Recall@10 is within 15 % of the printed one."""
    return {
        row["recommender"]
        for row in evidence.rows("accuracy", dataset="ml-1m", metric="Recall")
        if row["paper_exact"] and abs(row["exact"] / row["paper_exact"] - 1) <= 0.15
    }


def _stds_agree(evidence: Evidence) -> Verdict | None:
    near = _near_recommenders(evidence)
    ratios = {
        (row["recommender"], row["metric"], row["estimator"]): row["std"] / row["paper_std"]
        for row in evidence.rows("accuracy", dataset="ml-1m")
        if row["recommender"] in near and row["estimator"] in ("CLS", *_BV, "MLE")
    }
    if not ratios:
        return None
    good = sum(abs(ratio - 1) <= 0.2 for ratio in ratios.values())
    worst = max(ratios, key=lambda key: abs(ratios[key] - 1))
    return Verdict.plain(
        good == len(ratios),
        f"{good} of {len(ratios)} standard deviations are within 20 % of the printed ones "
        f"({', '.join(sorted(near))}); the farthest is {' '.join(worst)}, {ratios[worst]:.2f} "
        "times the printed one.",
    )


def _wmle_ratios_agree(evidence: Evidence) -> Verdict | None:
    near = _near_recommenders(evidence)
    gaps = [
        abs(c["WMLE"]["mean"] / c["MLE"]["mean"] - c["WMLE"]["paper_mean"] / c["MLE"]["paper_mean"])
        for c in evidence.contests("ml-1m")
        if {"MLE", "WMLE"} <= set(c) and c["MLE"]["recommender"] in near
    ]
    if not gaps:
        return None
    return Verdict.plain(
        max(gaps) <= 0.02,
        f"The ratio WMLE/MLE differs from the printed one by at most {max(gaps):.3f} in "
        f"{len(gaps)} rows ({', '.join(sorted(near))}).",
    )


def _share(found: Iterable[bool]) -> float:
    return float(np.mean(list(found)))


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{label} {count}" for label, count in counts.items())


def _spelt(by: str) -> str:
    return "RMSE" if by == "rmse" else by


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "accurate-ml-1m",
        "On ml-1m, MLE and MES are among the most or second most accurate.",
        "Estimation accuracy, Table 1",
        _often_in_first_two("ml-1m"),
    ),
    Claim(
        "wmle-citeulike",
        "On citeulike, WMLE is most often the most or second most accurate.",
        "Estimation accuracy, Table 2",
        _wmle_leads,
    ),
    Claim(
        "comparable-citeulike",
        "On citeulike, MES, MLE and BV are comparable: each has rows where it is the better one.",
        "Estimation accuracy, Table 2",
        _each_has_its_rows,
    ),
    Claim(
        "cls-worst-ml-1m",
        "On ml-1m, CLS is the worst.",
        "Estimation accuracy, Table 1",
        _cls_is_worst("ml-1m"),
    ),
    Claim(
        "cls-worst-citeulike",
        "On citeulike, CLS is the worst.",
        "Estimation accuracy, Table 2",
        _cls_is_worst("citeulike-a"),
    ),
    Claim(
        "accurate-pinterest-20",
        "On pinterest-20, MLE and MES are more accurate than BV.",
        "Appendix, accuracy on pinterest-20",
        _better_than_bv("pinterest-20"),
    ),
    Claim(
        "accurate-yelp",
        "On yelp, MLE and MES are more accurate than BV.",
        "Appendix, accuracy on yelp",
        _better_than_bv("yelp"),
    ),
    Claim(
        "accurate-overall",
        "Overall, MLE and MES are more accurate than BV.",
        "Appendix, all accuracy tables",
        _better_than_bv("ml-1m", "citeulike-a", "pinterest-20", "yelp"),
    ),
    Claim(
        "variance",
        "The new estimators tend to vary more over samples than BV, which controls its variance.",
        "Estimation accuracy, all tables",
        _vary_more_than_bv,
    ),
    Claim(
        "winners-wmle",
        "On ml-1m, WMLE is the best at naming the winner.",
        "Predicting winners, Table 3",
        _wmle_picks_winners,
    ),
    Claim(
        "winners-mle-mes",
        "On ml-1m, MLE and MES name winners equally well, and slightly better than BV 0.01.",
        "Predicting winners, Table 3",
        _mle_and_mes_pick_as_well,
    ),
    Claim(
        "curves-bv",
        "BV over- or underestimates the CDF: it lies farther from it than MLE and MES.",
        "Learned rank distributions, Figure 1",
        _bv_misses_the_cdf,
    ),
    Claim(
        "curves-wmle",
        "MLE and MES learn comparable curves, and WMLE's lies above both.",
        "Learned rank distributions, Figure 1",
        _wmle_lies_higher,
    ),
    Claim(
        "curves-aggregate",
        "The probability of a single rank is learned badly, the CDF well.",
        "Learned rank distributions, Figure 1",
        _aggregates_are_better,
    ),
    Claim(
        "sample-size-curves",
        "With 499 instead of 99 sampled items the curves come closer to the exact ones.",
        "Appendix, sample size",
        _curves_sharpen,
    ),
    Claim(
        "sample-size-metrics",
        "As the sample grows, accuracy grows.",
        "Appendix, sample size; checked on our sweep",
        _sweep_sharpens,
    ),
    Claim(
        "numbers-std",
        "Where a recommender is about as good as the paper's (exact Recall@10 within 15 %), CLS, "
        "BV and MLE vary as printed (within 20 %).",
        "Table 1, the numbers themselves; our check",
        _stds_agree,
    ),
    Claim(
        "numbers-wmle-ratio",
        "There, the ratio of WMLE to MLE is the printed one (within 0.02).",
        "Table 1, the numbers themselves; our check",
        _wmle_ratios_agree,
    ),
)
