"""Runs and relevance judgements of ranx: `ranx.Run` and `ranx.Qrels`, or dicts like them.

Only what ranx documents of them is used: ``to_dict()`` gives query -> document -> number.

>>> targets({"q": {"d1": 0.9, "d2": 0.4, "d3": 0.7}}, {"q": {"d3": 1}}, items=1000).ranks
array([2])
"""

from unsample.adapters.trec import targets

__all__ = ["targets"]
