"""How to evaluate before anything is scored: the error of each design at the same cost."""

from unsample.planning._plan import Plan, plan
from unsample.planning._planner import DESIGNS
from unsample.planning._simulate import Outcome

__all__ = ["DESIGNS", "Outcome", "Plan", "plan"]
