"""One file for each foreign library or engine; none is imported before it is asked for.

Each turns a library's own objects into ranks (`unsample.evidence.Targets`, `RankCounts`) or into a
`Task` for `unsample.evaluate`; no foreign type leaks inward. `REGISTRY` says what each offers and
how to install its library.

>>> from unsample.adapters import REGISTRY, trec
>>> found = trec.targets({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, items=50)
>>> found.counts
RankCounts(1 targets, 1 cells, items=50, sampled=1, without replacement)
>>> sorted(REGISTRY["lenskit"].offers)
['targets', 'task']
"""

from unsample.adapters._protocol import Adapter, ModelScores, Task
from unsample.adapters._registry import REGISTRY

__all__ = ["REGISTRY", "Adapter", "ModelScores", "Task"]
