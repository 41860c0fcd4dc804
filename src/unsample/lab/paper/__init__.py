"""Reproducing Jin et al., AAAI 2021: the paper as data, seeded resumable runs, and its claims.

>>> spec = Spec.choose(datasets=["ml-1m"], repeats=10)
>>> len(spec.tables())
10

`run` writes a folder of tidy CSV files, and `load_results` reads it.
"""

from unsample.lab.experiment._claims import CLAIMS, Claim, claim_rows
from unsample.lab.experiment._papers import ESTIMATORS, RECOMMENDERS, Exhibit, deviations, exhibits
from unsample.lab.experiment._results import SCHEMA, Reproduction, load_results
from unsample.lab.experiment._run import run
from unsample.lab.experiment._spec import Cell, Spec

__all__ = [
    "CLAIMS",
    "ESTIMATORS",
    "RECOMMENDERS",
    "SCHEMA",
    "Cell",
    "Claim",
    "Exhibit",
    "Reproduction",
    "Spec",
    "claim_rows",
    "deviations",
    "exhibits",
    "load_results",
    "run",
]
