"""kill -9 at random moments: by the clock, and just before calls that change files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from faulty.world import Outcome, Process, Trial, World, leftovers

__all__ = [
    "SHARES",
    "Reference",
    "Subject",
    "damage",
    "differences",
    "kill_trials",
    "reference_of",
    "subject_named",
]

#: How the kills are shared out; the names are those of `subject_named`.
SHARES = {
    "reproduce": 0.3,
    "reproduce with workers": 0.1,
    "evaluate": 0.15,
    "evaluate trained": 0.1,
    "evaluate with checkpoint": 0.15,
    "fetch": 0.1,
    "fetch archive": 0.1,
}
#: Temporary files that may lie about between a kill and the next run: one of each process.
_MOST_LEFTOVERS = 4
_OLD_PAGE = b"<html>an older page</html>"


@dataclass
class Subject:
    """A command that is killed, and how its files are told to be whole."""

    name: str
    arguments: Callable[[Path], list[str]]
    plan: dict[str, Any] = field(default_factory=dict)
    env: Callable[[Path], dict[str, str]] = lambda folder: {}
    #: Files that may be there before, with what they hold then.
    before: Mapping[str, bytes] = field(default_factory=dict)
    #: Files that are not the same at any moment, with what finds out whether they are whole.
    changing: Mapping[str, Callable[[bytes], object]] = field(default_factory=dict)

    def run(self, world: World, folder: Path, *, powerless: bool = False, **plan: Any) -> Process:
        return world.start(
            self.arguments(folder),
            plan={**self.plan, **plan},
            env=self.env(folder),
            powerless=powerless,
        )


@dataclass(frozen=True)
class Reference:
    """What an uninterrupted run leaves, says, and takes."""

    files: Mapping[str, bytes]
    out: str
    seconds: float
    calls: int


_REPRODUCE = (
    "reproduce --dataset ml-1m --recommender ease --recommender als --candidates all "
    "--repeats 2 --estimator MLE"
)
_BUNDLED = "evaluate --dataset ml-1m --recommender ease --bundled --design exact"
_TRAINED = "evaluate --dataset toy --recommender itemknn --design certified"


def subject_named(name: str, world: World) -> Subject:
    """Return what is killed under this name."""
    toy = {"registry": world.site.registry()}
    archive = {"registry": world.site.registry(archived=True)}
    subjects = (
        _reproduce("reproduce", workers=1),
        _reproduce("reproduce with workers", workers=2),
        _page("evaluate", _BUNDLED, {}),
        _page("evaluate trained", _TRAINED, toy, {"state.npz": _as_arrays}),
        Subject(
            "evaluate with checkpoint",
            lambda at: [str(at / "state.npz")],
            plan={"program": "checkpoint"},
            changing={"state.npz": _as_arrays},
        ),
        _fetch("fetch", toy),
        _fetch("fetch archive", archive),
    )
    return next(subject for subject in subjects if subject.name == name)


def _reproduce(name: str, workers: int) -> Subject:
    words = [*_REPRODUCE.split(), "--workers", str(workers), "--out"]
    return Subject(name, lambda at: [*words, str(at)], changing={"timing.json": json.loads})


def _page(
    name: str,
    words: str,
    plan: dict[str, Any],
    changing: Mapping[str, Callable[[bytes], object]] | None = None,
) -> Subject:
    def arguments(at: Path) -> list[str]:
        kept = [word for file in changing or {} for word in ("--checkpoint", str(at / file))]
        return [*words.split(), *kept, "--html", str(at / "page.html")]

    return Subject(name, arguments, plan, before={"page.html": _OLD_PAGE}, changing=changing or {})


def _fetch(name: str, plan: dict[str, Any]) -> Subject:
    return Subject(
        name,
        lambda _: ["datasets", "fetch", "toy"],
        plan,
        lambda at: {"UNSAMPLE_CACHE": str(at)},
    )


def kill_trials(name: str, world: World, kills: int) -> Iterator[Trial]:
    """Kill a command so many times in all, and see after each time and after going on."""
    world.site.pause = 0.03  # so that a download takes a second
    subject = subject_named(name, world)
    if name == "evaluate trained":
        world.run(["datasets", "fetch", "toy"], plan=subject.plan)
    reference = reference_of(subject, world)
    while kills > 0:
        trial = _kill_and_go_on(subject, reference, world, most=min(kills, 3))
        kills -= trial.kills
        yield trial
    world.site.pause = 0.0


def reference_of(subject: Subject, world: World) -> Reference:
    folder, tally = world.fresh("whole"), world.folder / "calls"
    outcome = subject.run(world, folder, count=str(tally)).wait()
    if outcome.code != 0:
        raise RuntimeError(f"{subject.name} fails before anything went wrong: {outcome.err}")
    calls = int(tally.read_text())
    tally.unlink()
    return Reference(_files(folder), _said(outcome, folder), outcome.seconds, calls)


def _kill_and_go_on(subject: Subject, reference: Reference, world: World, most: int) -> Trial:
    folder, rng = world.fresh(), world.rng
    if subject.before and rng.random() < 0.5:
        for file, content in subject.before.items():
            (folder / file).write_bytes(content)
    kills, problems, how = 0, [], []
    for _ in range(int(rng.integers(1, most + 1))):
        killed, moment = _run_and_kill(subject, reference, world, folder)
        kills += killed
        how.append(moment)
        problems += [f"after {moment}: {text}" for text in damage(subject, reference, folder)]
    outcome = subject.run(world, folder).wait()
    problems += [
        f"after {how}, going on: {text}"
        for text in differences(subject, reference, folder, outcome)
    ]
    if not problems:
        world.forget(folder)
    return Trial(subject.name, tuple(problems), kills)


def _run_and_kill(
    subject: Subject, reference: Reference, world: World, folder: Path
) -> tuple[int, str]:
    """Run the command and kill it; return whether that came in time, and what was done."""
    rng = world.rng
    if rng.random() < 0.6:
        call, torn = int(rng.integers(1, reference.calls + 1)), bool(rng.random() < 0.5)
        outcome = subject.run(world, folder, kill_at=call, torn=torn).wait()
        return int(outcome.code == -9), f"a kill at call {call}{', torn' if torn else ''}"
    process = subject.run(world, folder)
    seconds, group = rng.uniform(0, reference.seconds), bool(rng.random() < 0.5)
    try:
        process.popen.wait(seconds)
    except Exception:  # noqa: BLE001 - it is still at work, as it should be
        process.kill(group=group)
    code = process.wait().code
    return int(code == -9), f"a kill after {seconds:.2f} s{' of all processes' if group else ''}"


def damage(subject: Subject, reference: Reference, folder: Path) -> Iterator[str]:
    """Yield what is not as it was before or as it shall be, and what piles up."""
    temporary = leftovers(folder)
    if len(temporary) > _MOST_LEFTOVERS:
        yield f"{len(temporary)} temporary files"
    for file, content in _files(folder).items():
        if Path(file).name in temporary:
            continue
        if file in subject.changing:
            yield from _unreadable(file, content, subject.changing[file])
        elif content not in (reference.files.get(file), subject.before.get(file)):
            yield f"{file} is neither old nor new ({len(content)} bytes)"


def _unreadable(file: str, content: bytes, read: Callable[[bytes], object]) -> Iterator[str]:
    try:
        read(content)
    except Exception as problem:  # noqa: BLE001 - whatever is wrong is the finding
        yield f"{file} cannot be read: {problem!r}"


def differences(
    subject: Subject, reference: Reference, folder: Path, outcome: Outcome
) -> Iterator[str]:
    """Yield where a run that went on differs from one that was never interrupted."""
    if outcome.code != 0:
        yield f"exit status {outcome.code}: {outcome.err.strip()[-400:]}"
        return
    if outcome.complaint:
        yield f"complains: {outcome.complaint[-400:]}"
    found = _files(folder)
    if found.keys() != reference.files.keys():
        yield f"other files: {sorted(found.keys() ^ reference.files.keys())}"
    for file in found.keys() & reference.files.keys():
        # Of the files that change, a checkpoint ends the same; a note of the time does not.
        if file != "timing.json" and found[file] != reference.files[file]:
            yield f"{file} differs"
    if _said(outcome, folder) != reference.out:
        yield f"prints something else: {outcome.out[-400:]}"


def _files(folder: Path) -> dict[str, bytes]:
    """Return what the files hold, without the time that a run took."""
    return {
        str(path.relative_to(folder)): re.sub(
            rb'>(seconds|computed)</th><td class="words">[0-9.]+<', b"><", path.read_bytes()
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _said(outcome: Outcome, folder: Path) -> str:
    return re.sub(r"\([0-9]+ s\)", "", outcome.out.replace(str(folder), "."))


def _as_arrays(content: bytes) -> list[Any]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return [arrays[name] for name in arrays.files]
