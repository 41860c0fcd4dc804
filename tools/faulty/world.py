"""Running the command as a user would, and judging how it ended."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from faulty.site import Site

__all__ = ["Outcome", "Process", "Trial", "World", "can_be_powerless", "clear_failure", "leftovers"]

_CHILD = Path(__file__).with_name("child.py")
_SOURCES = Path(__file__).parents[2] / "src"
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.part")
_PATIENCE = 300
_POWERLESS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")


@dataclass(frozen=True)
class Trial:
    """One thing that was tried; without problems it went well. ``kills`` counts SIGKILLs."""

    name: str
    problems: tuple[str, ...] = ()
    kills: int = 0
    said: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def complaint(self) -> str:
        """What was said on standard error, warnings left out."""
        return "\n".join(
            line for line in self.err.splitlines() if line and not line.startswith("warning: ")
        )


@dataclass
class Process:
    """A command under way."""

    popen: subprocess.Popen[bytes]
    out: Path
    err: Path
    started: float

    def wait(self, seconds: float = _PATIENCE) -> Outcome:
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill(group=True)
            self.popen.wait()
            return self._outcome(code=-1000)
        return self._outcome(code=self.popen.returncode)

    def kill(self, *, group: bool = False) -> None:
        self.send(signal.SIGKILL, group=group)

    def send(self, number: int, *, group: bool = False) -> None:
        # Processes that this harness started, each in a session of its own.
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.popen.pid, number)

    def _outcome(self, code: int) -> Outcome:
        texts = [path.read_bytes().decode(errors="replace") for path in (self.out, self.err)]
        return Outcome(code, *texts, time.monotonic() - self.started)


@dataclass
class World:
    """A scratch folder, a server, and chance with a seed."""

    folder: Path
    site: Site
    rng: np.random.Generator
    kills: int
    planted: bool = False
    _number: int = field(default=0, repr=False)

    def fresh(self, name: str = "place") -> Path:
        self._number += 1
        path = self.folder / f"{self._number:04d}-{name}"
        path.mkdir()
        return path

    def start(
        self,
        arguments: Sequence[str | Path],
        *,
        plan: Mapping[str, Any] | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: Any = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        cwd: Path | None = None,
        powerless: bool = False,
    ) -> Process:
        """Start the command; without a plan just as a user would.

        ``powerless`` takes from root what lets it pass permissions.
        """
        self._number += 1
        out, err = (self.folder / f"{self._number:04d}.{kind}" for kind in ("out", "err"))
        how = ["-m", "unsample"]
        if plan is not None:
            how = [str(_CHILD), json.dumps({**plan, "planted": self.planted})]
        with out.open("wb") as to_out, err.open("wb") as to_err:
            popen = subprocess.Popen(  # noqa: S603 - our own command
                [
                    *(_POWERLESS if powerless and os.geteuid() == 0 else ()),
                    sys.executable,
                    *how,
                    *map(str, arguments),
                ],
                stdin=stdin,
                stdout=to_out if stdout is None else stdout,
                stderr=to_err,
                env=self.environment(env or {}),
                cwd=cwd,
                start_new_session=True,
            )
        return Process(popen, out, err, time.monotonic())

    def run(self, arguments: Sequence[str | Path], **options: Any) -> Outcome:
        return self.start(arguments, **options).wait()

    def environment(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("UNSAMPLE_")
        }
        ours: dict[str, str | None] = {
            "PYTHONPATH": str(_SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "NO_PROXY": "127.0.0.1",
            "UNSAMPLE_CACHE": str(self.folder / "cache"),
        }
        merged = {**kept, **ours, **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def forget(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)


def can_be_powerless() -> bool:
    """Return whether permissions can be made to stop this user."""
    return os.geteuid() != 0 or shutil.which(_POWERLESS[0]) is not None


def clear_failure(
    outcome: Outcome, *, code: int | Sequence[int], says: Sequence[str] = ()
) -> Iterator[str]:
    """Yield what a person would find wrong with how a command failed."""
    codes = [code] if isinstance(code, int) else list(code)
    lines = outcome.complaint.splitlines() or [""]
    if "Traceback" in outcome.err or "Exception ignored" in outcome.err:
        yield f"a traceback that ends: {lines[-1][-400:]}"
        return
    if outcome.code not in codes:
        yield f"exit status {outcome.code} instead of {codes}: {lines[-1][-400:]}"
    if len(lines) != 1 or not lines[0].startswith("unsample: "):
        yield f"{len(lines)} lines instead of one: {outcome.complaint[-400:]!r}"
    for word in says:
        if not re.search(word, outcome.complaint):
            yield f"does not say {word!r}: {lines[-1][-400:]!r}"


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files in a folder and below."""
    return sorted(path.name for path in folder.rglob(".*.part") if _TEMPORARY.fullmatch(path.name))
