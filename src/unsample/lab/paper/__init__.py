"""Reproducing Jin et al., AAAI 2021: the paper as data, seeded runs, and its claims.

>>> spec = Spec.choose(datasets=["ml-1m"], repeats=10)
>>> len(spec.tables())
10

`run` writes a folder of tidy CSV files, and `write_report` puts a page and tables in Markdown and
LaTeX beside them.
"""

from unsample.lab.paper._claims import claim_rows, claims
from unsample.lab.paper._exhibits import ESTIMATORS, RECOMMENDERS, Exhibit, deviations, exhibits
from unsample.lab.paper._report import VERDICTS, write_report
from unsample.lab.paper._run import run
from unsample.lab.paper._spec import Cell, Spec
from unsample.lab.paper._tables import SCHEMA, Reproduction

__all__ = [
    "ESTIMATORS",
    "RECOMMENDERS",
    "SCHEMA",
    "VERDICTS",
    "Cell",
    "Exhibit",
    "Reproduction",
    "Spec",
    "claim_rows",
    "claims",
    "deviations",
    "exhibits",
    "run",
    "write_report",
]
