"""`compare`: which model is truly better, how sure that is, and when it cannot be told.

Two errors stand between sampled ranks and the true difference of two models. One is chance: other
users, other sampled items. It shrinks with more users, and more so when both models were asked
about the same users. The other is what a sample cannot see: the two models may spread their top
ranks differently. The verdict allows for both. Beside it stands what chance alone would say, which
is the answer if sampling misleads about both models alike.
"""

from unsample.answers.comparison._compare import compare
from unsample.answers.comparison._duels import CORRECTIONS
from unsample.answers.comparison._models import Outcome
from unsample.answers.comparison._results import Comparison, Difference, Standing

__all__ = ["CORRECTIONS", "Comparison", "Difference", "Outcome", "Standing", "compare"]
