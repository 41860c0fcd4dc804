"""Every exception and warning that unsample raises on purpose.

All errors are `UnsampleError`. Errors about what the caller passed are `InputError`, which is also
a ValueError. The others are also the error that Python itself would raise. All warnings are
`UnsampleWarning`.

A message names the argument, the rule, the value that was given, and what to do.
The command line prints only the message and exits with ``exit_code``.
"""

from __future__ import annotations

#: Messages are shortened to this length: a cell of a damaged file can be megabytes long.
_LONGEST = 2000


class UnsampleError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 1

    def __str__(self) -> str:
        text = super().__str__()
        half = _LONGEST // 2
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
    """A budget that is too small for what a design promises."""


class MetricError(InputError):
    """An unknown metric, or a metric that an estimator cannot give."""


class ContradictionError(InputError):
    """Published numbers that no ranks can give; ``names`` are the fewest that cannot all hold."""

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class MethodError(InputError):
    """An unknown estimator, or a parameter that it does not have."""


class ScoreError(InputError):
    """Scores of the wrong shape or type, or scores that contain NaN."""


class FileError(InputError):
    """A file that is missing, unreadable, damaged, or lacks a column."""


class CheckpointError(FileError):
    """A checkpoint of another evaluation than the one to be continued."""


class DownloadError(UnsampleError, OSError):
    """A public file could not be downloaded; the message says how to provide it by hand."""


class SolverError(UnsampleError, RuntimeError):
    """A solver ended without a usable answer."""


class MissingExtraError(UnsampleError, ImportError):
    """An optional library is not installed; the message holds the command that installs it."""

    exit_code = 3


class UnsampleWarning(UserWarning):
    """Base of all warnings of this package."""


class BiasedMethodWarning(UnsampleWarning):
    """The method's values are known to be wrong; they are shown for comparison."""


class RefutedWarning(UnsampleWarning):
    """The data contradict the design that was stated: no P(R) gives them."""
