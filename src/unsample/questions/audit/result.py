"""`Audit`: an answer to each question about negatives, with its test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from unsample.report import Result


@dataclass(frozen=True)
class Finding:
    """One question about negatives, with its answer in a word and in a sentence."""

    question: str
    answer: str
    sentence: str
    #: The p-value of its test, corrected for the number of tests.
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """How negatives were drawn: an answer to each question, with its test.

    ``call`` is the `estimate` call that fits these negatives, or None if no call does. ``advice``
    tells what to do in both cases.

    >>> import numpy as np, unsample
    >>> lists = np.tile(np.random.default_rng(0).integers(1000, size=50), (100, 1))
    >>> result = unsample.audit(lists, items=1000)
    >>> result["shared lists"].sentence
    'All 100 targets share one list of negatives.'
    >>> result.call
    'unsample.estimate(ranks, items=1000, sampled=50, negatives=unsample.Negatives(shared=True))'
    """

    shown_by: ClassVar[str] = "unsample.questions.audit.view:view_of_audit"

    #: The size of the catalogue.
    catalogue: int
    #: The number of lists, one for each target.
    targets: int
    #: The fewest and the most negatives of a target.
    sampled: tuple[int, int]
    findings: tuple[Finding, ...]
    call: str | None
    advice: str

    def __getitem__(self, question: str) -> Finding:
        return {finding.question: finding for finding in self.findings}[question]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it."""
        return self.header() | {
            "items": self.catalogue,
            "targets": self.targets,
            "sampled": list(self.sampled),
            "findings": self.rows(),
            "call": self.call,
            "advice": self.advice,
        }

    @property
    def targets_read(self) -> int:
        """Return how many targets were read: each has a list."""
        return self.targets

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each finding."""
        return [asdict(finding) for finding in self.findings]
