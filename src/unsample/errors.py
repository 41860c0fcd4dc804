"""Every exception and warning that unsample raises on purpose.

All errors are `UnsampleError`. Those about what the caller passed are `InputError`, which is a
ValueError, too; the others are also the error that Python would raise. All warnings are
`UnsampleWarning`.

A message names the argument, the rule, the value it got, and what to do about it.
The command line prints the message alone and exits with ``exit_code``.
"""

from __future__ import annotations

#: Letters of a message that are shown: a cell of a damaged file can be megabytes long.
_LONGEST = 2000

__all__ = [
    "BiasedMethodWarning",
    "BudgetError",
    "CheckpointError",
    "ChecksumError",
    "ClippedWarning",
    "ContradictionError",
    "ConvergenceWarning",
    "DatasetError",
    "DesignError",
    "DownloadError",
    "FileError",
    "InputError",
    "MethodError",
    "MetricError",
    "MissingExtraError",
    "OutputError",
    "RankError",
    "RecommenderError",
    "RefutedWarning",
    "ScoreError",
    "SolverError",
    "UnresolvedWarning",
    "UnsampleError",
    "UnsampleWarning",
    "WorkerError",
]


class UnsampleError(Exception):
    """Base of all errors raised on purpose by this package."""

    exit_code = 1

    def __str__(self) -> str:
        text, half = super().__str__(), _LONGEST // 2
        if len(text) <= _LONGEST:
            return text
        left_out = f" ... ({len(text) - _LONGEST:,} letters left out) ... "
        return text[:half] + left_out + text[-half:]


class InputError(UnsampleError, ValueError):
    """Something the caller passed breaks a rule."""

    exit_code = 2


class RankError(InputError):
    """Ranks that cannot come from the stated design."""


class DesignError(InputError):
    """A sampling design that does not exist, or that ranks alone cannot identify."""


class BudgetError(DesignError):
    """A budget with which a design cannot keep what it promises."""


class MetricError(InputError):
    """An unknown metric, or a metric that an estimator cannot give."""


class ContradictionError(InputError):
    """Published numbers that no ranks can give together; ``names`` are the fewest that clash."""

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class MethodError(InputError):
    """An unknown estimator, or a parameter that it does not have."""


class ScoreError(InputError):
    """Scores of the wrong shape or kind, or with NaN among them."""


class RecommenderError(InputError):
    """An unknown recommender, or one asked for scores before it was fitted."""


class FileError(InputError):
    """A file that is missing, unreadable, truncated, or lacks a column."""


class CheckpointError(FileError):
    """A checkpoint that belongs to another evaluation than the one to be resumed."""


class ChecksumError(FileError):
    """A file whose content is not the published one; the message holds both checksums."""


class DatasetError(InputError):
    """An unknown data set, or one that lacks what is asked of it (a split, times, any rows)."""


class DownloadError(UnsampleError, OSError):
    """A public file could not be fetched; the message says how to provide it by hand."""


class WorkerError(UnsampleError, RuntimeError):
    """A process that worked for this one was ended from outside; what is finished is kept."""


class OutputError(UnsampleError, OSError):
    """Standard output takes no more: a full disk, or a device that fails."""


class SolverError(UnsampleError, RuntimeError):
    """A solver ended without an answer that may be used."""


class MissingExtraError(UnsampleError, ImportError):
    """An optional library is not installed; the message holds the install line."""

    exit_code = 3


class UnsampleWarning(UserWarning):
    """Base of all warnings given by this package."""


class ClippedWarning(UnsampleWarning):
    """A method's value left the range of its metric and was brought back to the nearest limit."""


class UnresolvedWarning(UnsampleWarning):
    """The sample cannot see ranks as small as K: the estimate rests on the method's assumption."""


class BiasedMethodWarning(UnsampleWarning):
    """The method's values are on another scale than the metric; they are shown for comparison."""


class RefutedWarning(UnsampleWarning):
    """The data contradict the shape that was assumed, or the design that was stated."""


class ConvergenceWarning(UnsampleWarning):
    """A solver stopped before it reached its tolerance."""
