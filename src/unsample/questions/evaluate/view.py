"""What is shown of an evaluation."""

from __future__ import annotations

from dataclasses import replace

from unsample._rounding import percent
from unsample.questions.estimate.view import (
    how_ranked,
    is_ranked_in_full,
    range_in_words,
    sentence_of,
    users_in_words,
    view_of_estimates,
)
from unsample.questions.evaluate.result import Evaluation
from unsample.report import View


def view_of_evaluation(result: Evaluation) -> View:
    """Return the view of estimates, with the design and its cost."""
    whole = view_of_estimates(result)
    settings = (("Design", str(result.design)), ("Seed", str(result.rng)), *whole.settings)
    about = (result.cost, *whole.about)
    data = how_ranked(result)
    if is_ranked_in_full(result.counts):
        items = range_in_words(*result.counts.catalogues)
        data = (
            f"{result.scored:,} scores, {percent(result.share)} of what a full ranking of "
            f"{users_in_words(result)} among {items} items needs (design {result.design.name})"
        )
    sentence = sentence_of(result, data=data)
    return replace(whole, verb="evaluate", about=about, settings=settings, sentence=sentence)
