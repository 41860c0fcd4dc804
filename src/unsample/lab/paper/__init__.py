"""Reproducing Jin et al., AAAI 2021: the paper as data, seeded runs, and its claims.

`run` writes a folder of tidy CSV files, with tables in Markdown and LaTeX beside them.

>>> sum("ours" not in claim for claim in claims())
16
"""

from unsample.lab.paper._claims import claim_rows, claims
from unsample.lab.paper._exhibits import ESTIMATORS, RECOMMENDERS, Cell, deviations, exhibits
from unsample.lab.paper._run import run
from unsample.lab.paper._tables import SCHEMA, Reproduction

__all__ = [
    "ESTIMATORS",
    "RECOMMENDERS",
    "SCHEMA",
    "Cell",
    "Reproduction",
    "claim_rows",
    "claims",
    "deviations",
    "exhibits",
    "run",
]
