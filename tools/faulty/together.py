"""Two processes in the same place at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from faulty.kills import Reference, Subject, damage, differences, reference_of, subject_named
from faulty.world import Outcome, Trial, World, clear_failure

__all__ = ["together"]


def together(world: World) -> Iterator[Trial]:
    """Start commands twice, at once and one after the other, and kill the first of two."""
    for name in ("evaluate", "evaluate with checkpoint", "fetch", "fetch archive"):
        yield from _both_end_well(world, name)
    yield from _one_reproduces(world)
    yield from _a_dead_one_blocks_nobody(world)
    yield from _workers_that_outlive_their_run(world)


def _both_end_well(world: World, name: str) -> Iterator[Trial]:
    world.site.pause = 0.03
    subject = subject_named(name, world)
    reference = reference_of(subject, world)
    for delay in (0.0, 0.3, 1.0):
        place = world.fresh()
        first = subject.run(world, place)
        time.sleep(delay)
        second = subject.run(world, place)
        problems = []
        for outcome in (first.wait(), second.wait()):
            problems += differences(subject, reference, place, outcome)
        yield Trial(f"{name} twice, {delay} s apart", tuple(problems))


def _one_reproduces(world: World) -> Iterator[Trial]:
    subject = subject_named("reproduce", world)
    reference = reference_of(subject, world)
    for wait in (lambda _: None, _until_claimed):
        place = world.fresh()
        first = subject.run(world, place)
        wait(place)
        second = subject.run(world, place)
        outcomes = [second.wait(), first.wait()]
        problems = list(damage(subject, reference, place))
        refused = [outcome for outcome in outcomes if outcome.code != 0]
        if len(refused) > 1:
            problems.append("both are refused")
        for outcome in refused:
            problems += clear_failure(outcome, code=2, says=["another unsample reproduce", "wait"])
        problems += differences(subject, reference, place, subject.run(world, place).wait())
        said = "".join(outcome.complaint for outcome in refused)
        yield Trial("reproduce twice", tuple(problems), said=said)


def _a_dead_one_blocks_nobody(world: World) -> Iterator[Trial]:
    for name in ("reproduce", "reproduce with workers", "fetch"):
        subject = subject_named(name, world)
        reference = reference_of(subject, world)
        place = world.fresh()
        first = subject.run(world, place)
        _until_claimed(place)
        time.sleep(0.5)
        first.kill()
        first.wait()
        outcome = subject.run(world, place).wait()
        problems = differences(subject, reference, place, outcome)
        yield Trial(f"{name} after a dead one", tuple(problems), kills=1)


def _workers_that_outlive_their_run(world: World) -> Iterator[Trial]:
    """Kill a run, whose workers finish what they were at, and start another in its folder."""
    subject = subject_named("reproduce with workers", world)

    def with_seed(seed: str) -> Callable[[Path], list[str]]:
        usual = subject_named("reproduce with workers", world).arguments
        return lambda at: [*usual(at), "--rng", seed, "--force", "--repeats", "40"]

    subject.arguments = with_seed("1")
    reference = reference_of(subject, world)
    for _ in range(3):
        place = world.fresh()
        subject.arguments = with_seed("2")
        first = subject.run(world, place)
        _until_claimed(place)
        time.sleep(float(world.rng.uniform(1, reference.seconds)))
        first.kill()
        first.wait()
        subject.arguments = with_seed("1")
        outcome = subject.run(world, place).wait()
        problems = list(_settled(subject, reference, place, outcome, world))
        yield Trial("another run over orphans", tuple(problems), kills=1)


def _settled(
    subject: Subject, reference: Reference, place: Path, outcome: Outcome, world: World
) -> Iterator[str]:
    """Yield differences, where a run that found a foreign cell may have to be given again."""
    if outcome.code != 0:
        yield from clear_failure(outcome, code=2, says=["gone", "run the same command again"])
        usual = subject.arguments
        subject.arguments = lambda at: [word for word in usual(at) if word != "--force"]
        outcome = subject.run(world, place).wait()
    yield from differences(subject, reference, place, outcome)


def _until_claimed(place: Path) -> None:
    """Wait until a process has begun to work in a folder."""
    patience = time.monotonic() + 60
    while not any(place.iterdir()) and time.monotonic() < patience:
        time.sleep(0.01)
