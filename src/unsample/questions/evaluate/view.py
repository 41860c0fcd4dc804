"""What is shown of an evaluation."""

from __future__ import annotations

from dataclasses import replace

from unsample.questions.estimate.view import view_of_estimates
from unsample.questions.evaluate.result import Evaluation
from unsample.report import View


def view_of_evaluation(result: Evaluation) -> View:
    """Return the view of estimates, with the design and its cost."""
    whole = view_of_estimates(result)
    settings = (("Design", str(result.design)), ("Seed", str(result.rng)))
    about = (result.cost, *whole.about)
    return replace(whole, verb="evaluate", about=about, settings=settings)
