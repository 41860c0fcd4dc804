"""Downloads that break off or lie, and downloads, cells and checkpoints that are damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from faulty.kills import differences, reference_of, subject_named
from faulty.site import CONTENT, Site
from faulty.world import Trial, World, clear_failure

__all__ = ["damaged_files", "dishonest_servers"]

_HALF = len(CONTENT) // 2

#: How a server misbehaves, the exit status, and what must be said.
_SERVERS: dict[str, tuple[Callable[[Site], None], int, list[str]]] = {
    "closes half-way": (
        lambda s: setattr(s, "cut_after", _HALF),
        1,
        ["try again", "UNSAMPLE_DATA"],
    ),
    "closes at once": (lambda s: setattr(s, "cut_after", 0), 1, ["try again"]),
    "promises too much": (lambda s: setattr(s, "told_length", 2 * len(CONTENT)), 1, ["try again"]),
    "promises too little": (lambda s: setattr(s, "told_length", _HALF), 2, ["expected sha256"]),
    "is slow": (lambda s: setattr(s, "pause", 4.0), 1, ["try again"]),
    "answers 500": (lambda s: setattr(s, "status", 500), 1, ["answers 500", "try again"]),
    "answers 404": (lambda s: setattr(s, "status", 404), 1, ["answers 404", "UNSAMPLE_DATA"]),
    "sends other content": (
        lambda s: setattr(s, "content", CONTENT[:-1] + b"!"),
        2,
        ["expected sha256"],
    ),
    "sends too much": (lambda s: setattr(s, "content", CONTENT * 2), 1, ["sends more"]),
    "sends a page": (lambda s: setattr(s, "content", b"<html>moved</html>"), 2, ["expected"]),
}


def dishonest_servers(world: World) -> Iterator[Trial]:
    """Fetch from a server that misbehaves, then from an honest one."""
    subject = subject_named("fetch", world)
    subject.plan["timeout"] = 2
    honest = replace(world.site)
    reference = reference_of(subject, world)
    for name, (misbehave, code, says) in _SERVERS.items():
        place = world.fresh()
        misbehave(world.site)
        outcome = subject.run(world, place).wait()
        problems = list(clear_failure(outcome, code=code, says=says))
        if any((place / "toy").iterdir()):
            problems.append("something of what came is left")
        for field, value in vars(honest).items():
            setattr(world.site, field, value)
        again = subject.run(world, place).wait()
        problems += differences(subject, reference, place, again)
        yield Trial(f"the server {name}", tuple(problems), said=outcome.complaint)


def damaged_files(world: World) -> Iterator[Trial]:
    """Damage what a finished command left, and give it again."""
    yield from _damaged_downloads(world)
    yield from _damaged_run(world)
    yield from _damaged_checkpoint(world)


def _damages(content: bytes) -> dict[str, bytes]:
    middle = len(content) // 2
    flipped = bytearray(content)
    flipped[middle] ^= 0x10
    return {
        "empty": b"",
        "truncated": content[:middle],
        "garbage": bytes(range(256)) * 8,
        "with a bit flipped": bytes(flipped),
    }


def _damaged_downloads(world: World) -> Iterator[Trial]:
    subject = subject_named("fetch", world)
    reference = reference_of(subject, world)
    use = ["evaluate", "--dataset", "toy", "--recommender", "popularity", "--design", "exact"]
    for name, content in _damages(CONTENT).items():
        place = world.fresh()
        (place / "toy").mkdir()
        (place / "toy" / "users.dat").write_bytes(content)
        outcome = world.run(use, plan=subject.plan, env=subject.env(place))
        problems = list(clear_failure(outcome, code=2, says=["expected", "fetch"]))
        problems += differences(subject, reference, place, subject.run(world, place).wait())
        yield Trial(f"users.dat {name}", tuple(problems), said=outcome.complaint)


def _damaged_run(world: World) -> Iterator[Trial]:
    subject = subject_named("reproduce", world)
    reference, whole = reference_of(subject, world), world.fresh("model")
    subject.run(world, whole).wait()
    cell = "cells/ml-1m.paper.ease.99.npz"
    for file in (cell, "accuracy.csv", "settings.json", "timing.json", "report.html"):
        for name, content in _damages((whole / file).read_bytes()).items():
            place = world.fresh()
            shutil.copytree(whole, place, dirs_exist_ok=True)
            (place / file).write_bytes(content)
            outcome = subject.run(world, place).wait()
            problems = differences(subject, reference, place, outcome)
            yield Trial(f"{file} {name}", tuple(problems))
            world.forget(place)
    yield _damaged_spec(world, whole)


def _damaged_spec(world: World, whole: Path) -> Trial:
    subject = subject_named("reproduce", world)
    (whole / "spec.json").write_bytes(b"{")
    outcome = subject.run(world, whole).wait()
    return Trial(
        "spec.json truncated",
        tuple(clear_failure(outcome, code=2, says=["cannot be read", "--force"])),
        said=outcome.complaint,
    )


def _damaged_checkpoint(world: World) -> Iterator[Trial]:
    subject = subject_named("evaluate with checkpoint", world)
    place = world.fresh()
    subject.run(world, place).wait()
    state = place / "state.npz"
    for name, content in _damages(state.read_bytes()).items():
        state.write_bytes(content)
        outcome = subject.run(world, place).wait()
        lines = outcome.err.strip().splitlines() or [""]
        # This is Python, not the command: the last line of the traceback is the message.
        right = "CheckpointError" in lines[-1] and "delete" in lines[-1]
        problems = () if right else (f"says {lines[-1]!r}",)
        yield Trial(f"checkpoint {name}", problems, said=lines[-1])
