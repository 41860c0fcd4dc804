"""Clocks that jump, and files from 1970 or from the future."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from faulty.kills import Subject, differences, reference_of, subject_named
from faulty.world import Trial, World

__all__ = ["clocks"]

_YEARS = 365 * 86_400.0
_STAMPS = {"1970": 0.0, "the future": 4_000_000_000.0}


def clocks(world: World) -> Iterator[Trial]:
    """Let time jump, before and during a run: the same bytes must come out."""
    world.site.pause = 0.03
    for name in ("reproduce", "evaluate", "evaluate with checkpoint", "fetch", "fetch archive"):
        subject = subject_named(name, world)
        reference = reference_of(subject, world)
        place = world.fresh()
        outcome = subject.run(world, place, clock=20 * _YEARS).wait()
        problems = differences(subject, reference, place, outcome)
        yield Trial(f"{name} with a jumping clock", tuple(problems))
        for stamp, seconds in _STAMPS.items():
            place = world.fresh()
            _begin(subject, world, place)
            _stamp(place, seconds)
            outcome = subject.run(world, place).wait()
            problems = differences(subject, reference, place, outcome)
            yield Trial(f"{name} on files of {stamp}", tuple(problems))


def _begin(subject: Subject, world: World, place: Path) -> None:
    process = subject.run(world, place)
    while process.popen.poll() is None and not any(place.rglob("*.*")):
        time.sleep(0.02)
    time.sleep(0.3)
    process.kill(group=True)
    process.wait()


def _stamp(place: Path, seconds: float) -> None:
    for path in (place, *place.rglob("*")):
        os.utime(path, (seconds, seconds))
