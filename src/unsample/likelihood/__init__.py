"""The likelihood of a curve: observed cells, and the fit of a log-density."""

from unsample.likelihood._certificates import (
    CLOSED_FORM,
    Certificate,
    Solution,
    Status,
)
from unsample.likelihood._condensed_cells import (
    CellProducts,
    CondensedCells,
    StratumCells,
)
from unsample.likelihood._log_density import (
    LogDensity,
)
from unsample.likelihood._observed import (
    Observed,
    check_system,
    over_catalogues,
    require_single_ranks,
)

__all__ = [
    "CLOSED_FORM",
    "CellProducts",
    "Certificate",
    "CondensedCells",
    "LogDensity",
    "Observed",
    "Solution",
    "Status",
    "StratumCells",
    "check_system",
    "over_catalogues",
    "require_single_ranks",
]
