"""One file for each foreign library or engine; none is imported before it is asked for.

Each turns a library's own objects into ranks (`unsample.counts.Targets`, `RankCounts`); no
foreign type leaks inward. `INSTALL` says what to give to ``pip install`` for each.

>>> from unsample.adapters import trec
>>> found = trec.targets({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, items=50)
>>> found.counts
RankCounts(1 targets, 1 cells, items=50, sampled=1, without replacement)
"""

from unsample.adapters._install import INSTALL

__all__ = ["INSTALL"]
