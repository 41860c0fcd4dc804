"""Break the command in every way there is, and see that nothing is lost: ``make faults``.

    python tools/faults.py [SCENARIO...] [--kills 200] [--seed 0] [--out DIR] [--planted]

Prints a table of scenarios, trials and failures, and ends with status 1 where anything failed.
With ``--out`` everything that was said goes to ``DIR/faults.json``. With ``--planted`` files are
written in place, which must be found out. As root on Linux the disk is really full and really
read-only (in a mount namespace of its own); otherwise those trials are left out, and say so.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from faulty.clocks import clocks
from faulty.disk import full_disks, no_permission, places, read_only
from faulty.downloads import damaged_files, dishonest_servers
from faulty.kills import SHARES, kill_trials
from faulty.site import serving
from faulty.streams import homes, signals, streams, terminals
from faulty.together import together
from faulty.world import Trial, World


def _kills(name: str, world: World) -> Iterator[Trial]:
    return kill_trials(name, world, round(world.kills * SHARES[name]))


SCENARIOS: Mapping[str, Callable[[World], Iterator[Trial]]] = {
    **{f"kill -9: {name}": partial(_kills, name) for name in SHARES},
    "disk full": full_disks,
    "disk read-only": read_only,
    "no permission": no_permission,
    "awkward places": places,
    "dishonest servers": dishonest_servers,
    "damaged files": damaged_files,
    "two at a time": together,
    "clock jumps": clocks,
    "signals": signals,
    "streams": streams,
    "no home": homes,
    "terminals": terminals,
}


def main() -> int:
    options = _options()
    # In the background of a shell interrupts are ignored, and so they would be by what is tried.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = [name for name in SCENARIOS if not options.scenario or _is_meant(name, options)]
    found: dict[str, list[Trial]] = {}
    print(f"{'scenario':34} {'trials':>6} {'kills':>6} {'failures':>8} {'seconds':>8}", flush=True)
    for position, name in enumerate(chosen):
        with tempfile.TemporaryDirectory(prefix="faults-") as folder, serving() as site:
            Path(folder).chmod(0o777)
            rng = np.random.default_rng([options.seed, position])
            started = time.monotonic()
            world = World(Path(folder), site, rng, options.kills, options.planted)
            found[name] = list(SCENARIOS[name](world))
        _print(name, found[name], time.monotonic() - started)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        content = {name: [asdict(trial) for trial in trials] for name, trials in found.items()}
        (options.out / "faults.json").write_text(json.dumps(content, indent=1) + "\n")
    trials = [trial for some in found.values() for trial in some]
    failures = sum(bool(trial.problems) for trial in trials)
    kills = sum(trial.kills for trial in trials)
    print(f"{'all':34} {len(trials):6} {kills:6} {failures:8}")
    return int(failures > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenario", nargs="*", help=f"one of {', '.join(SCENARIOS)}, or its start")
    parser.add_argument("--kills", type=int, default=200, help="SIGKILLs in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for everything that was said")
    parser.add_argument("--planted", action="store_true", help="write badly; this must fail")
    return parser.parse_args()


def _is_meant(name: str, options: argparse.Namespace) -> bool:
    return any(name.startswith(text) for text in options.scenario)


def _print(name: str, trials: list[Trial], seconds: float) -> None:
    failed = [trial for trial in trials if trial.problems]
    kills = sum(trial.kills for trial in trials)
    print(f"{name:34} {len(trials):6} {kills:6} {len(failed):8} {seconds:8.0f}", flush=True)
    for trial in failed:
        for problem in trial.problems:
            print(f"  {trial.name}: {problem}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
