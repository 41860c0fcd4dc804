"""Run the command in a world that is about to go wrong: ``python child.py PLAN VERB ...``.

The plan is JSON. What it can ask for:

* ``homeless``: be a user whom no list of users knows, and who has no home but ``$HOME``;
* ``registry``: data sets on the harness's own server, as in the tests of downloads;
* ``clock``: add seconds to the time of day, a new amount at every look;
* ``file_limit``: let no file grow beyond so many bytes;
* ``planted``: write files in place, as one should not, to see that this is found out;
* ``count``: write into this file how many dangerous calls there were;
* ``kill_at``: end by SIGKILL just before that dangerous call; ``torn`` first cuts the file in half
  that is being written;
* ``timeout``: seconds to wait for a server;
* ``program``: ``"checkpoint"`` runs an evaluation with a checkpoint instead of the command, which
  has no option for it.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_DANGEROUS = {"fcntl.flock", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.truncate"}


def main() -> None:
    plan, arguments = json.loads(sys.argv[1]), sys.argv[2:]
    if "homeless" in plan:
        _forget_all_users()
    if "file_limit" in plan:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (plan["file_limit"], plan["file_limit"]))
    if "clock" in plan:
        _let_the_clock_jump(plan["clock"])
    if plan.get("planted"):
        _write_in_place()
    if "registry" in plan:
        _register(plan["registry"], plan.get("timeout", 30))
    if "count" in plan or "kill_at" in plan:
        _watch(plan.get("kill_at"), plan.get("torn", False), plan.get("count"))
    sys.argv = ["unsample", *arguments]
    if plan.get("program") == "checkpoint":
        _evaluate(Path(arguments[0]))
        return
    from unsample.__main__ import main as unsample

    unsample()


def _forget_all_users() -> None:
    import pwd

    def unknown(uid: int) -> Any:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    pwd.getpwuid = unknown


def _write_in_place() -> None:
    from unsample import _files

    def write(path: Path, content: Callable[[IO[bytes]], object]) -> None:
        buffer = io.BytesIO()
        content(buffer)
        half = len(buffer.getvalue()) // 2
        with path.open("wb") as file:
            for part in (buffer.getvalue()[:half], buffer.getvalue()[half:]):
                file.write(part)
                file.flush()
                os.fsync(file.fileno())

    # Before anybody imports it by its name.
    _files.write_atomically = write


def _register(registry: dict[str, Any], timeout: int) -> None:
    from unsample.lab.datasets import _files, _registry

    _registry._tables = lambda: registry  # noqa: SLF001
    _files._SCHEMES = ("https://", "http://")  # noqa: SLF001
    _files._TIMEOUT_SECONDS = timeout  # noqa: SLF001


def _let_the_clock_jump(seconds: float) -> None:
    real, jumps = time.time, random.Random(0)  # noqa: S311 - chance, not secrecy
    time.time = lambda: real() + jumps.uniform(-seconds, seconds)


def _watch(kill_at: int | None, torn: bool, report: str | None) -> None:
    """Count calls that change files, and end just before one of them."""
    numbers = itertools.count(1)

    def look(handle: int | None = None) -> None:
        number = next(numbers)
        if number == kill_at:
            if torn and handle is not None:
                os.ftruncate(handle, os.fstat(handle).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        if report is not None:
            os.pwrite(tally, b"%d" % number, 0)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        changes = event in _DANGEROUS or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        )
        # Compiled modules are Python's own business.
        if changes and "__pycache__" not in str(arguments[0]):
            look()

    fsync = os.fsync

    def synchronise(handle: int) -> None:
        look(handle)
        fsync(handle)

    if report is not None:
        tally = os.open(report, os.O_WRONLY | os.O_CREAT, 0o666)
    os.fsync = synchronise
    sys.addaudithook(hear)


def _evaluate(path: Path) -> None:
    import numpy as np

    from unsample.answers import evaluate
    from unsample.designs import _run

    begin = _run.Checkpoint.__init__
    begin.__defaults__ = (0.02, *begin.__defaults__[1:])  # write far more often than usual
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(2, 3000, 16))
    result = evaluate(
        (users, items),
        (np.arange(3000), np.arange(3000)),
        items=3000,
        design="adaptive",
        budget=200 * 3000,
        metrics="Recall@10",
        resamples=0,
        batch=1 << 13,
        checkpoint=path,
    )
    print(result.to_json())


if __name__ == "__main__":
    main()
