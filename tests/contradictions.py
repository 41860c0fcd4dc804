"""What a comparison says twice must be said alike: values, intervals, probabilities and places."""

from __future__ import annotations

import numpy as np

from unsample.questions.compare.result import Comparison

LEVELS = (0.6, 0.8, 0.95, 0.99)


def contradictions(result: Comparison) -> list[str]:
    """Return where a comparison says two things that cannot both be true."""
    return [*_of_differences(result), *_of_standings(result), *_of_places(result)]


def _of_differences(result: Comparison) -> list[str]:
    found = []
    for pair in result.differences:
        one, other = (result.estimates[name][pair.metric].value for name in (pair.a, pair.b))
        if not np.isclose(pair.value, one - other, rtol=1e-9, atol=1e-12):
            found.append(f"{pair}: values {one}, {other}")
        if not -1.0 <= pair.low <= pair.high <= 1.0:
            found.append(f"{pair}: beyond what a difference can be")
        if pair.probability is None:
            continue
        for level in LEVELS:
            low, high = pair.interval(level)
            passes = max(pair.probability, 1 - pair.probability) > (1 + level) / 2
            if passes != (low > 0 or high < 0):
                found.append(f"{pair}: {low}, {high} at {level}")
    return found


def _of_standings(result: Comparison) -> list[str]:
    found = []
    for row in result.standings:
        if (row.low, row.high) != result.estimates[row.model][row.metric].interval(result.level):
            found.append(f"{row}: another interval than that of the estimate")
        if not row.low - 1e-12 <= row.value <= row.high + 1e-12:
            found.append(f"{row}: outside its interval")
        for other in result.models:
            if row.probability is not None and other != row.model:
                probability = result.probability(row.model, other, row.metric)
                if row.probability > probability + 1e-12:
                    found.append(f"{row}: best more often than better than {other}, {probability}")
    return found


def _of_places(result: Comparison) -> list[str]:
    found = []
    for metric in result.metrics:
        places = result.places(metric)
        for pair in (pair for pair in result.differences if pair.metric == metric.name):
            if pair.winner is None:
                continue
            loser = pair.b if pair.winner == pair.a else pair.a
            if places[pair.winner][1] >= len(places) or places[loser][0] <= 1:
                found.append(f"{pair}: places {places}")
        winner = result.winner(metric)
        if (winner is not None) != ((1, 1) in places.values()):
            found.append(f"{metric}: {winner} beats all, but places are {places}")
    return found
