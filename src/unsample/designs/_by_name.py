"""Designs by the names that people type."""

from __future__ import annotations

from unsample._checks import check_choice
from unsample.designs._designs import Certified, Design, Exact, Fixed
from unsample.designs._guided import Guided
from unsample.errors import DesignError, InputError

#: Name -> design.
DESIGNS: dict[str, type[Design]] = {
    design.name: design for design in (Exact, Certified, Guided, Fixed)
}


def as_design(design: str | Design) -> Design:
    """Return the design that was named, or given."""
    if isinstance(design, Design):
        return design
    if not isinstance(design, str):
        raise InputError(
            f"design must be a name or a design such as Fixed(sampled=99), got {design!r}"
        )
    check_choice("design", design, DESIGNS, error=DesignError)
    return DESIGNS[design]()
