"""How to evaluate before anything is scored: the error of each design at the same cost."""

from unsample.answers.planning._plan import Plan, plan
from unsample.answers.planning._planner import DESIGNS
from unsample.answers.planning._simulate import Outcome

__all__ = ["DESIGNS", "Outcome", "Plan", "plan"]
