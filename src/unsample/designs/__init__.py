"""How to look at a catalogue: designs that run on a scorer or are simulated, and full rankings.

>>> import numpy as np
>>> ranks = np.random.default_rng(0).integers(1, 10_001, size=500)
>>> found = Guided().simulate(ranks, items=10_000, budget=50_000)
>>> found.scored <= 50_000
True
"""

from unsample.designs._by_name import DESIGNS, as_design
from unsample.designs._designs import (
    Certified,
    Design,
    Exact,
    Fixed,
)
from unsample.designs._execution import (
    Run,
    run,
)
from unsample.designs._findings import (
    Findings,
)
from unsample.designs._guided import (
    Guided,
)
from unsample.designs._guides import (
    as_guide,
)
from unsample.designs._item_orders import (
    LARGEST_ORDER,
)
from unsample.designs._user_draws import (
    drawn_users,
)
from unsample.designs._user_values import (
    OpenValues,
    UserValues,
)

__all__ = [
    "DESIGNS",
    "LARGEST_ORDER",
    "Certified",
    "Design",
    "Exact",
    "Findings",
    "Fixed",
    "Guided",
    "OpenValues",
    "Run",
    "UserValues",
    "as_design",
    "as_guide",
    "drawn_users",
    "run",
]
