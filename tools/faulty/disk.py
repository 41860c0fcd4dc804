"""Disks that are full or read-only, places that may not be written, names that are awkward."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faulty.kills import Reference, Subject, damage, differences, reference_of, subject_named
from faulty.world import Trial, World, can_be_powerless, clear_failure, leftovers

__all__ = ["full_disks", "no_permission", "places", "read_only"]

#: A verb that is quickly done and writes a page.
PAGE = ["plan", "--items", "500", "--users", "100", "--repeats", "5", "--html"]
_CLONE_NEWNS = 0x20000
#: Kilobytes at which each command runs out of room somewhere else.
_TIGHT = {
    "evaluate": (4, 16, 64),
    "evaluate with checkpoint": (4, 128),
    "fetch": (64, 200, 256, 400),
    "fetch archive": (64, 256, 400),
    "reproduce": (4, 12, 20, 28, 36, 52, 68, 84, 100),
}


def full_disks(world: World) -> Iterator[Trial]:
    """Run out of room, make room, go on: the same files as if nothing had happened."""
    for name, sizes in _TIGHT.items():
        subject = subject_named(name, world)
        reference = reference_of(subject, world)
        for size in sizes:
            yield _run_out_of_room(world, subject, reference, size)
    yield _limited_files(world)


def _run_out_of_room(world: World, subject: Subject, reference: Reference, kilobytes: int) -> Trial:
    name = f"{subject.name} with {kilobytes} kB"
    with _mounted(world.fresh(), kilobytes) as place:
        if place is None:
            return Trial(f"{name}: left out, needs root")
        outcome = subject.run(world, place).wait()
        problems = list(damage(subject, reference, place))
        # A checkpoint is no command and so no message of one line.
        if outcome.code == 0:
            problems.append("fits, choose less room")
        elif "program" not in subject.plan:
            problems += clear_failure(outcome, code=2, says=["No space left", "make room"])
        if leftovers(place):
            problems.append(f"leaves {leftovers(place)}")
        _mount("-o", "remount,size=64m", place)
        again = subject.run(world, place).wait()
        problems += differences(subject, reference, place, again)
    return Trial(name, tuple(problems), said=outcome.complaint)


def _limited_files(world: World) -> Trial:
    page = world.fresh() / "page.html"
    outcome = world.run([*PAGE, page], plan={"file_limit": 20_000})
    problems = [*clear_failure(outcome, code=2, says=["cannot write", "too large"])]
    if list(page.parent.iterdir()):
        problems.append(f"leaves {list(page.parent.iterdir())}")
    if "scored items a user" not in outcome.out:
        problems.append("does not print the result that it has")
    return Trial("a file that may not grow", tuple(problems), said=outcome.complaint)


def read_only(world: World) -> Iterator[Trial]:
    """Find everything read-only: a clear message, and nothing changed."""
    for name in ("evaluate", "reproduce", "fetch"):
        subject = subject_named(name, world)
        with _mounted(world.fresh(), 65_536) as place:
            if place is None:
                yield Trial(f"{name}: left out, needs root")
                continue
            _mount("-o", "remount,ro", place)
            outcome = subject.run(world, place).wait()
            problems = list(clear_failure(outcome, code=2, says=["Read-only", str(place)]))
            yield Trial(f"{name} on a read-only disk", tuple(problems), said=outcome.complaint)
            yield from _read_only_with_content(world, subject, place)


def _read_only_with_content(world: World, subject: Subject, place: Path) -> Iterator[Trial]:
    """What is there and right is used (fetch), what must be written is refused (the others)."""
    _mount("-o", "remount,rw", place)
    subject.run(world, place).wait()
    wrong = place / "toy" / "users.dat"
    fetches = wrong.exists()
    _mount("-o", "remount,ro", place)
    outcome = subject.run(world, place).wait()
    problems = [] if fetches else list(clear_failure(outcome, code=2, says=["Read-only"]))
    if fetches and outcome.code != 0:
        problems.append(f"a data set at hand is refused: {outcome.complaint}")
    yield Trial(f"{subject.name}, done before", tuple(problems), said=outcome.complaint)
    if fetches:
        _mount("-o", "remount,rw", place)
        wrong.write_bytes(b"bad sectors")
        _mount("-o", "remount,ro", place)
        outcome = subject.run(world, place).wait()
        problems = list(clear_failure(outcome, code=2, says=["expected sha256", "delete"]))
        yield Trial("fetch over a damaged file", tuple(problems), said=outcome.complaint)


def no_permission(world: World) -> Iterator[Trial]:
    """Be stopped by permissions."""
    if not can_be_powerless():
        yield Trial("left out, needs setpriv")
        return
    for name in ("evaluate", "reproduce", "fetch"):
        subject = subject_named(name, world)
        for mode in (0o555, 0o000):
            place = world.fresh()
            place.chmod(mode)
            outcome = subject.run(world, place, powerless=True).wait()
            problems = clear_failure(outcome, code=2, says=["Permission denied", str(place)])
            title = f"{name} in a folder of mode {mode:o}"
            yield Trial(title, tuple(problems), said=outcome.complaint)
    page = world.fresh() / "page.html"
    page.write_bytes(b"old")
    page.chmod(0o444)
    outcome = world.run([*PAGE, page], powerless=True)
    problems = [] if outcome.code == 0 else [f"refused: {outcome.complaint}"]
    yield Trial("a read-only page in a folder of one's own", tuple(problems))


def places(world: World) -> Iterator[Trial]:
    """Name places where nothing can be written, and some where it can though it looks odd."""
    folder = world.fresh()
    (folder / "file").write_text("")
    (folder / "real.html").write_text("old")
    (folder / "link.html").symlink_to("real.html")
    (folder / "loop").symlink_to("loop")
    bad = {
        folder: "Is a directory",
        folder / "missing" / "page.html": "make its folder first",
        folder / "file" / "page.html": "Not a directory",
        folder / ("x" * 300): "choose a shorter name",
        folder / "loop": "symbolic links",
    }
    for page, says in bad.items():
        outcome = world.run([*PAGE, page])
        problems = list(clear_failure(outcome, code=2, says=["cannot write", says]))
        if outcome.out:
            problems.append("finds out only when everything is computed")
        yield Trial(f"--html {page.name[:20]}", tuple(problems), said=outcome.complaint)
    for out, says in {folder / "file": "must be a folder", folder / ("y" * 300): "shorter"}.items():
        outcome = world.run([*_REPRODUCE, "--out", out])
        yield Trial(
            f"--out {out.name[:20]}",
            tuple(clear_failure(outcome, code=2, says=[says])),
            0,
            outcome.complaint,
        )
    longest = "x" * (255 - len(".html")) + ".html"
    for page in (longest, "☃ [x] *.html", "link.html", os.fsdecode(b"latin-\xe9.html")):
        outcome = world.run([*PAGE, folder / page], env={"TMPDIR": "/nowhere"})
        problems = [] if outcome.code == 0 else [f"refused: {outcome.complaint}"]
        if outcome.code == 0 and b"</html>" not in (folder / page).read_bytes()[-20:]:
            problems.append("not written")
        yield Trial(f"--html {page[-20:]!a}", tuple(problems), said=outcome.complaint)
    kept = (folder / "real.html").read_text() == "old"
    yield Trial("what a link points to", () if kept else ("was overwritten",))
    yield _device(world)
    yield Trial("no leftovers", tuple(leftovers(folder)))


def _device(world: World) -> Trial:
    """Write a page to a pipe with a name, which must be written to and not replaced."""
    pipe = world.fresh() / "pipe.html"
    os.mkfifo(pipe)
    process = world.start([*PAGE, pipe])
    content = pipe.read_bytes()
    outcome = process.wait()
    problems = [] if outcome.code == 0 and b"</html>" in content[-20:] else [outcome.err[-300:]]
    if not pipe.is_fifo():
        problems.append("the pipe was replaced by a file")
    return Trial("--html on a named pipe", tuple(problems))


_REPRODUCE = [
    "reproduce",
    "--dataset",
    "ml-1m",
    "--recommender",
    "ease",
    "--candidates",
    "all",
    "--repeats",
    "2",
    "--estimator",
    "MLE",
]


@contextmanager
def _mounted(place: Path, kilobytes: int) -> Iterator[Path | None]:
    """Yield a folder on a small disk of its own, seen by this process alone; None if forbidden."""
    libc = ctypes.CDLL(None, use_errno=True)
    allowed = hasattr(libc, "unshare") and libc.unshare(_CLONE_NEWNS) == 0
    if not allowed:
        yield None
        return
    _mount("--make-rprivate", "/")
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k,mode=777", "tmpfs", place)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)  # noqa: S603, S607 - our own mount


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)  # noqa: S603, S607 - our own mount
