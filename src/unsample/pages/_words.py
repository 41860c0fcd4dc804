"""What the words on a page mean, and what was assumed, in sentences."""

from __future__ import annotations

import math

from unsample.answers import Estimates
from unsample.confidence import blind_rank
from unsample.pages._text import heading

__all__ = [
    "COMPARISON_MEANINGS",
    "PLAN_MEANINGS",
    "assumptions",
    "limits_in_words",
    "meanings",
    "settings",
    "smallest_resolved",
]

_CANDIDATES = {
    "unseen": "Items that a user had seen were left out of the candidates.",
    "all": "Items that a user had seen were kept among the candidates, and may rank above the "
    "target.",
    None: "It was not said whether items that a user had seen were excluded or kept; the "
    "intervals allow for either.",
}

COMPARISON_MEANINGS = (
    (
        "Difference",
        "A metric of the first model minus that of the second, both on the full catalogue.",
    ),
    (
        "a better, best",
        (
            "The chance that the model is truly ahead of the other, or of all others, from the "
            "least to the most that agree with the data. What separates the two is not chance but "
            "what the sample cannot see."
        ),
    ),
    (
        "If alike",
        (
            "The same chance if sampling misleads about all models alike. It is the answer of "
            "chance alone, and rests on that belief."
        ),
    ),
    (
        "p",
        "How surprising the data are if the verdict is wrong, corrected for the number of pairs.",
    ),
    (
        "Place",
        (
            "1 for models that no other is shown to beat, 2 for those beaten by one of them, and "
            "so on. Models that cannot be told apart share a place."
        ),
    ),
)

PLAN_MEANINGS = (
    (
        "Error",
        (
            "The root of the expected squared distance between the estimate and the metric of "
            "these users ranked in full, relative to that metric. It is made of bias and spread "
            "(sd)."
        ),
    ),
    ("Cost", "Items scored for a user, on average. A full ranking scores the whole catalogue."),
    ("fixed", "As many sampled items for each target."),
    ("adaptive", "More items for targets near the top: the sample grows until enough beat them."),
    ("certified", "Items are scored until the metric@K is certain; fewer users if that is dear."),
    ("fewer users", "Some of the users, ranked in full."),
)


def meanings(result: Estimates, level: float) -> tuple[tuple[str, str], ...]:
    """Return the terms of an estimate and what they mean."""
    if result.certainty is None:
        return (
            ("Value", "The metric of the full ranks: nothing had to be estimated."),
            ("Interval", "How far the value would move with other users like these."),
            ("P(R)", _RANKS),
        )
    share = f"{100 * level:g}"
    return (
        (
            "Estimate",
            (
                "What the metric would be if each target had been ranked among all items, by the "
                "method named beside it."
            ),
        ),
        (
            "Interval",
            (
                f"Holds the true value in {share} of 100 evaluations, the bias of sampling "
                f"included, {_given(result)}. It asks which values agree with the data, and is the "
                "same for every method."
            ),
        ),
        (
            "Bounds",
            (
                "The least and the greatest value that agree with the data, whatever P(R) is. No "
                "method can know more without assuming something."
            ),
        ),
        (
            "Resolved",
            (
                "At least one sampled item falls into the top K on average. Where fewer do, "
                "targets inside and outside the top K look alike in the sample, and the value "
                f"rests on what the method assumes about the top ranks. {smallest_resolved(result)}"
            ),
        ),
        ("P(R)", _RANKS),
    )


_RANKS = (
    "The distribution of the targets' ranks R among all items. Every metric@K is a mean over its "
    "first K ranks, and its sum up to rank K is Recall@K."
)


def smallest_resolved(result: Estimates) -> str:
    """Return from which K on the sample resolves metrics@K."""
    smallest = math.ceil(blind_rank(result.counts) - 1e-9)
    if smallest > result.counts.largest_catalogue:
        return "This sample resolves no K."
    return f"This sample resolves K of {smallest:,} and more."


def assumptions(result: Estimates) -> tuple[str, ...]:
    """Return what the numbers rest on, a sentence each."""
    if result.certainty is None:
        return ("Each target was ranked among all its candidates.", "Users are independent.")
    how = "with" if result.counts.replacement else "without"
    return (
        (
            f"The sampled items of each target were drawn uniformly among its candidates, {how} "
            "replacement, and ties with the target were broken at random."
        ),
        "Users are independent of each other.",
        _shape_in_words(result),
        _CANDIDATES[result.candidates],
        *(f"Method {name}: {text}." for name, text in result.explanations.items() if text),
    )


def settings(result: Estimates) -> tuple[tuple[str, str], ...]:
    """Return what went in, and how the solvers ended."""
    solvers = {entry.method: str(entry.certificate) for entry in result.entries}
    return (
        ("Ranks", heading(result)),
        ("Seen items", result.candidates or "not said"),
        *((f"Solver of {method}", text) for method, text in solvers.items()),
    )


def limits_in_words(low: float, high: float) -> str:
    """Return an interval as it is printed, or why there is none."""
    return "nothing varies" if math.isnan(low) else f"{low:.4f} to {high:.4f}"


def _given(result: Estimates) -> str:
    if result.certainty is None or result.certainty.shape_in_use() is None:
        return "if the data are what they are said to be, which they do not look like"
    return f"assuming {result.assumes}"


def _shape_in_words(result: Estimates) -> str:
    shape = None if result.certainty is None else result.certainty.shape_in_use()
    if shape is None:
        return "No P(R) fits the data, so neither intervals nor bounds mean anything."
    if shape.limits_nothing:
        return "The intervals assume nothing about P(R), and are no narrower than the bounds."
    return f"The intervals assume {shape}; the bounds do not need it."
