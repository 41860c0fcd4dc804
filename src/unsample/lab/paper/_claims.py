"""Check on our tables what the paper's text says about its own, and two claims about ours.

``claims.toml`` has the sentences, each with the check below that judges it. The paper judges by
bias. Every claim about accuracy is judged by root mean square error as well, which is what a
single evaluation suffers. Claims about standard deviations and winners have one verdict, which is
given under both. Claims about mean curves have none by RMSE.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

from unsample._checks import FloatArray
from unsample.lab.paper._tables import Row, Rows, grouped, values_of

#: The columns of errors by which claims are judged.
_BY = ("bias", "rmse")
_NEW = ("MLE", "WMLE", "MES")
_BV = ("BV 0.1", "BV 0.01")
#: How near, relative to each other, two estimators are still called comparable.
_COMPARABLE = 0.1
#: How near to the printed number ours must be: exact Recall@10.
_NEAR_EXACT = 0.15
#: Standard deviations.
_NEAR_STD = 0.2
#: Ratios of two means.
_NEAR_RATIO = 0.02

#: Whether a claim holds by bias, whether by RMSE, and what its detail tells; None: not known.
Verdict: TypeAlias = tuple[bool, bool | None, dict[str, Any]] | None
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
        other = "" if candidates == "all" else f"candidates: {candidates}"
        for claim in claims():
            verdict = _verdict(tables, candidates, claim=claim)
            if verdict is None and other:
                continue
            by_bias, by_rmse, numbers = verdict or (None, None, None)
            yield {
                "id": claim["id"] + (f".{candidates}" if other else ""),
                "claim": claim["text"] + (f" ({other})" if other else ""),
                "claimed_by": "us" if claim.get("ours") else "the paper",
                "where": claim["where"] + (f"; {other}, not the paper's" if other else ""),
                "holds_by_bias": by_bias,
                "holds_by_rmse": by_rmse,
                "detail": _MISSING if numbers is None else claim["detail"].format(**numbers),
            }


def _verdict(tables: Mapping[str, Rows], candidates: str, *, claim: Row) -> Verdict:
    """Return what the check of a claim finds, if each of the claim's data sets was run."""
    table, check = _CHECKS[claim["check"]]
    wanted = set(claim["datasets"])
    mine = [row for row in tables[table] if row["candidates"] == candidates]
    rows = [row for row in mine if not wanted or row["dataset"] in wanted]
    if not rows or not wanted <= set(values_of(rows, "dataset")):
        return None
    return check(rows, **claim.get("options", {}))


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
_POSITIONS = {"best": slice(0, 1), "first two": slice(0, 2), "last": slice(-1, None)}


def _contests(rows: Sequence[Row]) -> list[dict[str, Row]]:
    """Return accuracy rows by estimator, one for each row of the paper's tables."""
    groups = grouped(rows, "dataset", "recommender", "metric").values()
    return [{row["estimator"]: row for row in group} for group in groups]


def _counted(
    rows: Sequence[Row], count: Callable[[dict[str, float]], dict[str, bool]], *, rule: str
) -> Verdict:
    """Count what is true of the errors of each contest, by bias and by RMSE.

    ``count`` takes the errors of a contest by estimator, and says of what it is true.
    """
    contests = _contests(rows)
    tallies = {}
    for by in _BY:
        true_of = [
            count({label: abs(row[by]) for label, row in contest.items()}) for contest in contests
        ]
        tallies[by] = _Tally({label: sum(true[label] for true in true_of) for label in true_of[0]})
    by_bias, by_rmse = (_RULES[rule](tally, len(contests)) for tally in tallies.values())
    return by_bias, by_rmse, {"rows": len(contests), **tallies}


def _check_positions(
    rows: Sequence[Row],
    *,
    positions: str,
    rule: str,
    estimators: Sequence[str] = (),
    rivals: Sequence[str] = (),
) -> Verdict:
    """Count how often the ``estimators`` have these positions among the ``rivals``, by error.

    By default all estimators are rivals, and all rivals are counted.
    """

    def count(errors: dict[str, float]) -> dict[str, bool]:
        order = sorted(rivals or errors, key=lambda label: errors[label])
        counted = estimators or rivals or errors
        return {label: label in order[_POSITIONS[positions]] for label in counted}

    return _counted(rows, count, rule=rule)


def _check_duels(rows: Sequence[Row], *, rule: str) -> Verdict:
    """Count how often MLE and MES have smaller errors than each of the BV estimators."""

    def count(errors: dict[str, float]) -> dict[str, bool]:
        return {f"{a} beats {b} in": errors[a] < errors[b] for a in ("MLE", "MES") for b in _BV}

    return _counted(rows, count, rule=rule)


def _check_winners(rows: Sequence[Row], *, rule: str) -> Verdict:
    """Add up in how many repeats each estimator names the true winner."""
    groups = grouped(rows, "estimator").items()
    totals = _Tally({label: sum(row["correct"] for row in group) for (label,), group in groups})
    holds = _RULES[rule](totals, len(rows))
    return holds, holds, {"totals": totals}


def _check_deviations(rows: Sequence[Row]) -> Verdict:
    """Count how often all new estimators vary more than all BV estimators."""
    deviations = [
        {label: row["std"] for label, row in contest.items()} for contest in _contests(rows)
    ]
    more = sum(min(std[new] for new in _NEW) > max(std[bv] for bv in _BV) for std in deviations)
    times = np.median([std["MLE"] / std["BV 0.01"] for std in deviations])
    holds = 2 * more > len(deviations)
    return holds, holds, {"more": more, "rows": len(deviations), "times": times}


def _check_sweep(rows: Sequence[Row]) -> Verdict:
    """Return in how many series the error is smaller with the most items than with the fewest."""
    sizes = sorted(values_of(rows, "sampled"))
    fewest = sizes[0]
    largest = sizes[-1]
    shares = {by: _shares_improved(rows, by, fewest=fewest, largest=largest) for by in _BY}
    texts = {
        by: ", ".join(f"{label} in {100 * part:.0f} %" for label, part in shares[by].items())
        for by in _BY
    }
    by_bias, by_rmse = (min(shares[by].values()) > 0.5 for by in _BY)
    return by_bias, by_rmse, {"fewest": fewest, "largest": largest, **texts}


def _shares_improved(
    rows: Sequence[Row], by: str, *, fewest: int, largest: int
) -> dict[str, float]:
    """Return in which part of its series each estimator has a smaller error with more items."""
    names = ("dataset", "recommender", "metric")
    shares = {}
    for (label,), mine in sorted(grouped(rows, "estimator").items()):
        improved = []
        for series in grouped(mine, *names).values():
            error = {row["sampled"]: abs(row[by]) for row in series}
            improved.append(error[largest] < error[fewest])
        shares[label] = float(np.mean(improved))
    return shares


def _comparable(one: float, other: float) -> bool:
    """Return whether two numbers are within a tenth of the larger one.

    >>> _comparable(95.0, 100.0), _comparable(85.0, 100.0)
    (True, False)
    """
    return abs(one - other) <= _COMPARABLE * max(one, other)


# -- curves -------------------------------------------------------------------------------------


def _figures(rows: Sequence[Row]) -> dict[tuple[str, int], Curves]:
    """Return the CDFs by recommender and sample size."""
    return {
        (recommender, sampled): {
            label: np.array([row["cdf"] for row in curve])
            for (label,), curve in grouped(figure, "estimator").items()
        }
        for (recommender, sampled), figure in grouped(rows, "recommender", "sampled").items()
    }


def _off(curve: FloatArray, exact: FloatArray) -> float:
    """Return the mean distance of a curve from the exact one, relative to the exact mean.

    >>> round(_off(np.array([0.1, 0.3]), np.array([0.2, 0.3])), 3)
    0.2
    """
    return float(np.abs(curve - exact).mean() / exact.mean())


def _check_curves_bv(rows: Sequence[Row]) -> Verdict:
    """Compare how far the curve of BV 0.1 is from the exact one with MLE and MES."""
    holds = []
    texts = []
    for (name, _), curves in _figures(rows).items():
        off = {label: _off(curves[label], curves["exact"]) for label in ("BV 0.1", "MLE", "MES")}
        holds.append(off["BV 0.1"] > max(off["MLE"], off["MES"]))
        shown = ", ".join(f"{label} {100 * value:.1f} %" for label, value in off.items())
        texts.append(f"{name}: {shown}")
    return all(holds), None, {"figures": "; ".join(texts)}


def _check_curves_wmle(rows: Sequence[Row]) -> Verdict:
    """Compare the means of the curves: WMLE above MLE and MES, which are alike."""
    holds = []
    texts = []
    for (name, _), curves in _figures(rows).items():
        mle, wmle, mes = (float(curves[label].mean()) for label in _NEW)
        holds.append(wmle > max(mle, mes) and _comparable(mle, mes))
        texts.append(f"{name}: WMLE/MLE {wmle / mle:.3f}, MES/MLE {mes / mle:.3f}")
    return all(holds), None, {"figures": "; ".join(texts)}


def _check_curves_sums(rows: Sequence[Row]) -> Verdict:
    """Compare how far single probabilities and their sums are from the exact ones."""
    holds = []
    texts = []
    for (name, _), curves in _figures(rows).items():
        exact = curves["exact"]
        for label in [known for known in curves if known != "exact"]:
            single = _off(np.diff(curves[label], prepend=0.0), np.diff(exact, prepend=0.0))
            summed = _off(curves[label], exact)
            holds.append(single > 2.0 * summed)
            texts.append(f"{name} {label} {100 * single:.0f} % against {100 * summed:.0f} %")
    return all(holds), None, {"curves": ", ".join(texts)}


def _check_curves_by_size(rows: Sequence[Row]) -> Verdict:
    """Compare how far curves are from the exact one with few and with many sampled items."""
    (small, few), (large, many) = sorted(_figures(rows).items(), key=lambda entry: entry[0][1])
    off = {
        label: (_off(few[label], few["exact"]), _off(many[label], many["exact"]))
        for label in few
        if label != "exact"
    }
    shown = (f"{label} {100 * a:.1f} % to {100 * b:.1f} %" for label, (a, b) in off.items())
    numbers = {
        "few": small[1],
        "many": large[1],
        "recommender": small[0],
        "curves": ", ".join(shown),
    }
    return all(after < before for before, after in off.values()), None, numbers


# -- the printed numbers ------------------------------------------------------------------------


def _near_rows(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Return the rows of recommenders whose exact Recall@10 is near the printed one, and these."""
    near = {
        row["recommender"]
        for row in rows
        if row["metric"] == "Recall"
        and row["paper_exact"]
        and abs(row["exact"] / row["paper_exact"] - 1) <= _NEAR_EXACT
    }
    return [row for row in rows if row["recommender"] in near], ", ".join(sorted(near))


def _check_printed_deviations(rows: Sequence[Row]) -> Verdict:
    """Count how many of our standard deviations are near the printed ones."""
    alike, near = _near_rows(rows)
    ratios = {
        f"{row['recommender']} {row['metric']} {row['estimator']}": row["std"] / row["paper_std"]
        for row in alike
        if row["estimator"] in ("CLS", *_BV, "MLE")
    }
    if not ratios:
        return None
    good = sum(abs(ratio - 1) <= _NEAR_STD for ratio in ratios.values())
    farthest = max(ratios, key=lambda key: abs(ratios[key] - 1))
    numbers = {
        "good": good,
        "cells": len(ratios),
        "near": near,
        "farthest": farthest,
        "ratio": ratios[farthest],
    }
    return good == len(ratios), good == len(ratios), numbers


def _check_printed_ratios(rows: Sequence[Row]) -> Verdict:
    """Return how far our ratios of WMLE to MLE are from the printed ones at most."""
    alike, near = _near_rows(rows)
    gaps = []
    for contest in _contests(alike):
        wmle = contest["WMLE"]
        mle = contest["MLE"]
        ours = wmle["mean"] / mle["mean"]
        printed = wmle["paper_mean"] / mle["paper_mean"]
        gaps.append(abs(ours - printed))
    if not gaps:
        return None
    holds = max(gaps) <= _NEAR_RATIO
    return holds, holds, {"gap": max(gaps), "rows": len(gaps), "near": near}


#: The checks by their names in ``claims.toml``, each with the table that it looks at.
_CHECKS: Mapping[str, tuple[str, Callable[..., Verdict]]] = {
    "positions": ("accuracy", _check_positions),
    "duels": ("accuracy", _check_duels),
    "winners": ("winners", _check_winners),
    "deviations": ("accuracy", _check_deviations),
    "sweep": ("sweep", _check_sweep),
    "curves_bv": ("distributions", _check_curves_bv),
    "curves_wmle": ("distributions", _check_curves_wmle),
    "curves_sums": ("distributions", _check_curves_sums),
    "curves_by_size": ("distributions", _check_curves_by_size),
    "printed_deviations": ("accuracy", _check_printed_deviations),
    "printed_ratios": ("accuracy", _check_printed_ratios),
}
