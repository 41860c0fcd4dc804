"""What the paper's text says about its tables and figures, as checks on our own.

The sentences stand in ``claims.toml``, each with the check below that judges it. The paper judges
by bias. Every claim about accuracy is judged by root mean square error as well, which is what a
single evaluation suffers. Claims that are not about accuracy (spreads, winners) have one verdict,
given under both; claims about mean curves have none by RMSE.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

from unsample._checks import FloatArray
from unsample.lab.paper._tables import Row, Rows, grouped, values_of

_NEW = ("MLE", "WMLE", "MES")
_BV = ("BV 0.1", "BV 0.01")
#: How near, relative to each other, two estimators are still called comparable.
_COMPARABLE = 0.1
#: How near our exact Recall@10 must be to the printed one, and then the spreads and the ratios.
_NEAR_EXACT, _NEAR_STD, _NEAR_RATIO = 0.15, 0.2, 0.02

#: The rows of each table among one kind of candidates.
Tables: TypeAlias = Mapping[str, Sequence[Row]]
#: Whether a claim holds by bias, whether by RMSE, and what its detail tells; None: not known.
Verdict: TypeAlias = tuple[bool | None, bool | None, dict[str, Any]] | None
#: The CDFs of a figure by estimator, with the exact one.
Curves: TypeAlias = Mapping[str, FloatArray]

_MISSING = "This run lacks the data sets, recommenders or estimators for it."


@cache
def claims() -> tuple[Row, ...]:
    """Return the claims of the paper, in its order: id, text, where, detail, and their check."""
    text = files("unsample.lab.paper").joinpath("claims.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["claim"])


def claim_rows(tables: Mapping[str, Rows]) -> Iterator[Row]:
    """Yield every claim with its verdict, among all items as in the paper, then among unseen."""
    for candidates in sorted(values_of(tables["accuracy"], "candidates")):
        mine = {
            name: [row for row in rows if row.get("candidates") == candidates]
            for name, rows in tables.items()
        }
        other = "" if candidates == "all" else f"candidates: {candidates}"
        for claim in claims():
            told = {"id", "text", "where", "detail", "check"}
            options = {key: value for key, value in claim.items() if key not in told}
            verdict = _CHECKS[claim["check"]](mine, **options)
            if verdict is None and other:
                continue
            by_bias, by_rmse, found = verdict or (None, None, None)
            yield {
                "id": claim["id"] + (f".{candidates}" if other else ""),
                "claim": claim["text"] + (f" ({other})" if other else ""),
                "where": claim["where"] + (f"; {other}, not the paper's" if other else ""),
                "holds_by_bias": by_bias,
                "holds_by_rmse": by_rmse,
                "detail": _MISSING if found is None else claim["detail"].format(**found),
            }


# -- accuracy and winners: how often who is ahead -----------------------------------------------


class _Tally(dict[str, int]):
    """How often something is true of each estimator."""

    def __str__(self) -> str:
        return ", ".join(f"{label} {count}" for label, count in self.items())


#: What a tally over so many rows must show.
_RULES: Mapping[str, Callable[[_Tally, int], bool]] = {
    "mostly": lambda tally, rows: 2 * min(tally.values()) > rows,
    "WMLE leads": lambda tally, _: tally["WMLE"] == max(tally.values()),
    "each leads": lambda tally, _: (
        min(tally["MLE"], tally["MES"], sum(tally[bv] for bv in _BV)) > 0
    ),
    "MLE and MES beat BV alike": lambda tally, _: (
        _comparable(tally["MLE"], tally["MES"])
        and min(tally["MLE"], tally["MES"]) > tally["BV 0.01"]
    ),
}
_PLACES = {"best": slice(0, 1), "first two": slice(0, 2), "last": slice(-1, None)}


def _contests(
    tables: Tables, datasets: Sequence[str], needs: Iterable[str]
) -> list[dict[str, Row]]:
    """Return accuracy rows by estimator, one for each table row of these data sets, or of all.

    There are none unless every data set was run, with all the estimators it ``needs``.
    """
    rows = [row for row in tables["accuracy"] if not datasets or row["dataset"] in datasets]
    groups = grouped(rows, "dataset", "recommender", "metric").values()
    contests = [{row["estimator"]: row for row in group} for group in groups]
    whole = set(datasets) <= set(values_of(rows, "dataset"))
    return contests if whole and all(set(needs) <= set(each) for each in contests) else []


def _counted(
    contests: Sequence[Mapping[str, Row]],
    count: Callable[[dict[str, float]], dict[str, bool]],
    rule: str,
) -> Verdict:
    """Count what is true of the errors of each table row, by bias and by RMSE."""
    if not contests:
        return None
    rows, tallies = len(contests), {}
    for by in ("bias", "rmse"):
        found = [count({label: abs(c[label][by]) for label in c}) for c in contests]
        tallies[by] = _Tally({label: sum(true[label] for true in found) for label in found[0]})
    by_bias, by_rmse = (_RULES[rule](tally, rows) for tally in tallies.values())
    return by_bias, by_rmse, {"rows": rows, **tallies}


def _check_places(
    tables: Tables,
    *,
    datasets: Sequence[str],
    needs: Sequence[str],
    places: str,
    rule: str,
    told: Sequence[str] = (),
    rivals: Sequence[str] = (),
) -> Verdict:
    """Count how often the estimators ``told`` have these places among rivals, or among all."""

    def count(errors: dict[str, float]) -> dict[str, bool]:
        order = sorted(rivals or errors, key=lambda label: errors[label])
        return {label: label in order[_PLACES[places]] for label in told or rivals or errors}

    return _counted(_contests(tables, datasets, needs), count, rule)


def _check_duels(tables: Tables, *, datasets: Sequence[str], rule: str) -> Verdict:
    new = ("MLE", "MES")

    def count(errors: dict[str, float]) -> dict[str, bool]:
        return {f"{a} beats {b} in": errors[a] < errors[b] for a in new for b in _BV}

    return _counted(_contests(tables, datasets, (*new, *_BV)), count, rule)


def _check_winners(tables: Tables, *, datasets: Sequence[str], rule: str) -> Verdict:
    rows = [row for row in tables["winners"] if row["dataset"] in datasets]
    groups = grouped(rows, "estimator").items()
    totals = _Tally({label: sum(row["correct"] for row in group) for (label,), group in groups})
    if not {*_NEW, *_BV} <= set(totals):
        return None
    holds = _RULES[rule](totals, len(rows))
    return holds, holds, {"totals": totals}


def _check_spreads(tables: Tables, *, datasets: Sequence[str]) -> Verdict:
    contests = _contests(tables, datasets, (*_NEW, *_BV))
    if not contests:
        return None
    more = sum(
        min(c[new]["std"] for new in _NEW) > max(c[bv]["std"] for bv in _BV) for c in contests
    )
    times = np.median([c["MLE"]["std"] / c["BV 0.01"]["std"] for c in contests])
    holds = 2 * more > len(contests)
    return holds, holds, {"more": more, "rows": len(contests), "times": times}


def _check_sweep(tables: Tables, *, datasets: Sequence[str]) -> Verdict:
    rows = [row for row in tables["sweep"] if not datasets or row["dataset"] in datasets]
    series = [
        sorted(steps, key=lambda row: row["sampled"])
        for steps in grouped(rows, "dataset", "recommender", "metric", "estimator").values()
    ]
    if not series or any(len(steps) < 2 for steps in series):
        return None
    sizes, labels = (sorted(values_of(rows, name)) for name in ("sampled", "estimator"))
    holds, found = [], {"fewest": sizes[0], "most": sizes[-1]}
    for by in ("bias", "rmse"):
        better: dict[str, list[bool]] = {label: [] for label in labels}
        for steps in series:
            better[steps[0]["estimator"]].append(abs(steps[-1][by]) < abs(steps[0][by]))
        shares = {label: float(np.mean(each)) for label, each in better.items()}
        holds.append(min(shares.values()) > 0.5)
        found[by] = ", ".join(f"{label} in {100 * part:.0f} %" for label, part in shares.items())
    return holds[0], holds[1], found


def _comparable(one: float, other: float) -> bool:
    return abs(one - other) <= _COMPARABLE * max(one, other)


# -- curves -------------------------------------------------------------------------------------


def _figures(tables: Tables, datasets: Sequence[str]) -> dict[tuple[str, int], Curves]:
    """Return the CDFs of data sets by recommender and sample size."""
    rows = [row for row in tables["distributions"] if row["dataset"] in datasets]
    return {
        (recommender, sampled): {
            label: np.array([row["cdf"] for row in curve])
            for (label,), curve in grouped(figure, "estimator").items()
        }
        for (recommender, sampled), figure in grouped(rows, "recommender", "sampled").items()
    }


def _check_curves(
    tables: Tables, *, datasets: Sequence[str], needs: Sequence[str], judge: str
) -> Verdict:
    figures = _figures(tables, datasets)
    if not all(set(needs) <= set(curves) for curves in figures.values()):
        return None
    found = [each for (name, _), curves in figures.items() for each in _JUDGES[judge](name, curves)]
    texts = [text for _, text in found]
    shown = {"figures": "; ".join(texts), "curves": ", ".join(texts)}
    return (all(holds for holds, _ in found), None, shown) if found else None


def _off(curve: FloatArray, exact: FloatArray) -> float:
    """Return the mean distance of a curve from the exact one, relative to the exact mean."""
    return float(np.abs(curve - exact).mean() / exact.mean())


def _bv_lies_farther(name: str, curves: Curves) -> Iterator[tuple[bool, str]]:
    off = {label: _off(curves[label], curves["exact"]) for label in ("BV 0.1", "MLE", "MES")}
    shown = ", ".join(f"{label} {100 * value:.1f} %" for label, value in off.items())
    yield off["BV 0.1"] > max(off["MLE"], off["MES"]), f"{name}: {shown}"


def _wmle_lies_higher(name: str, curves: Curves) -> Iterator[tuple[bool, str]]:
    mle, wmle, mes = (float(curves[label].mean()) for label in _NEW)
    shown = f"{name}: WMLE/MLE {wmle / mle:.3f}, MES/MLE {mes / mle:.3f}"
    yield wmle > max(mle, mes) and _comparable(mle, mes), shown


def _sums_are_better(name: str, curves: Curves) -> Iterator[tuple[bool, str]]:
    exact = curves["exact"]
    for label in [known for known in curves if known != "exact"]:
        single = _off(np.diff(curves[label], prepend=0.0), np.diff(exact, prepend=0.0))
        summed = _off(curves[label], exact)
        shown = f"{name} {label} {100 * single:.0f} % against {100 * summed:.0f} %"
        yield single > 2.0 * summed, shown


#: What is true of a figure, or of each of its curves, with the numbers behind that.
_JUDGES: Mapping[str, Callable[[str, Curves], Iterator[tuple[bool, str]]]] = {
    "BV lies farther": _bv_lies_farther,
    "WMLE lies higher": _wmle_lies_higher,
    "sums are better": _sums_are_better,
}


def _check_curves_by_size(tables: Tables, *, datasets: Sequence[str]) -> Verdict:
    figures = _figures(tables, datasets)
    if len(figures) < 2:
        return None
    (small, few), (large, many) = sorted(figures.items(), key=lambda entry: entry[0][1])
    off = {
        label: (_off(few[label], few["exact"]), _off(many[label], many["exact"]))
        for label in few
        if label != "exact" and label in many
    }
    shown = (f"{label} {100 * a:.1f} % to {100 * b:.1f} %" for label, (a, b) in off.items())
    found = {"few": small[1], "many": large[1], "recommender": small[0], "curves": ", ".join(shown)}
    return all(after < before for before, after in off.values()), None, found


# -- the printed numbers ------------------------------------------------------------------------


def _near_rows(tables: Tables, datasets: Sequence[str]) -> tuple[list[Row], str]:
    """Return the rows of recommenders whose exact Recall@10 is near the printed one, and these."""
    rows = [row for row in tables["accuracy"] if row["dataset"] in datasets]
    near = {
        row["recommender"]
        for row in rows
        if row["metric"] == "Recall"
        and row["paper_exact"]
        and abs(row["exact"] / row["paper_exact"] - 1) <= _NEAR_EXACT
    }
    return [row for row in rows if row["recommender"] in near], ", ".join(sorted(near))


def _check_printed_spreads(tables: Tables, *, datasets: Sequence[str]) -> Verdict:
    rows, near = _near_rows(tables, datasets)
    ratios = {
        f"{row['recommender']} {row['metric']} {row['estimator']}": row["std"] / row["paper_std"]
        for row in rows
        if row["estimator"] in ("CLS", *_BV, "MLE")
    }
    if not ratios:
        return None
    good = sum(abs(ratio - 1) <= _NEAR_STD for ratio in ratios.values())
    farthest = max(ratios, key=lambda key: abs(ratios[key] - 1))
    found = {"good": good, "cells": len(ratios), "near": near}
    found |= {"farthest": farthest, "ratio": ratios[farthest]}
    return good == len(ratios), good == len(ratios), found


def _check_printed_ratios(tables: Tables, *, datasets: Sequence[str]) -> Verdict:
    rows, near = _near_rows(tables, datasets)
    gaps = [
        abs(c["WMLE"]["mean"] / c["MLE"]["mean"] - c["WMLE"]["paper_mean"] / c["MLE"]["paper_mean"])
        for c in _contests({"accuracy": rows}, (), ("MLE", "WMLE"))
    ]
    if not gaps:
        return None
    holds = max(gaps) <= _NEAR_RATIO
    return holds, holds, {"gap": max(gaps), "rows": len(gaps), "near": near}


_CHECKS: Mapping[str, Callable[..., Verdict]] = {
    check.__name__.removeprefix("_check_"): check
    for check in (
        _check_places,
        _check_duels,
        _check_winners,
        _check_spreads,
        _check_sweep,
        _check_curves,
        _check_curves_by_size,
        _check_printed_spreads,
        _check_printed_ratios,
    )
}
