"""Public data sets of interactions, splits, and a synthetic generator."""

from unsample.datasets._interactions import Interactions

__all__ = ["Interactions"]
