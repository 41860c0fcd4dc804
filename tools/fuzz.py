"""Give parsers and readers what atheris makes up, for ten minutes: ``make prove LONG=1``.

Whatever comes, the answer is a value or a message of ours (`UnsampleError`); anything else stops
the run and is written to a file. Every call picks a parser by the first byte. Tables are not among
them: DuckDB reads those, and hypothesis tries them in the tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["unsample"]):
    from unsample import estimators, metrics
    from unsample.adapters import trec
    from unsample.counts import RankCounts
    from unsample.errors import UnsampleError
    from unsample.posterior import Prior
    from unsample.questions.published.ask import published

PLACE = Path(tempfile.mkdtemp()) / "file"
QRELS = {"q1": {"d1": 1}, "q2": {"d5": 2}}


def _of_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        PLACE.write_bytes(data)
        return read(PLACE)

    return parse


def _of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("utf-8", "replace"))


def _number(text: str) -> object:
    name, _, value = text.partition("=")
    return published({name: value}, items=1000, sampled=99, users=100)


#: What takes bytes, and an input to begin with.
PARSERS: list[tuple[Callable[[bytes], object], bytes]] = [
    (_of_text(metrics.parse), b"NDCG@10"),
    (_of_text(estimators.parse), b"bv(gamma=0.01)"),
    (_of_text(_number), b"HR@10=0.71"),
    (
        _of_file(RankCounts.load),
        (
            b'{"format":"unsample.RankCounts/1","replacement":true,"sampled":[9],"items":[100],'
            b'"low":[1],"high":[1],"count":[1],"weight":[1],"weight_squared":[1]}'
        ),
    ),
    (_of_file(Prior.load), b"PK"),
    (_of_file(lambda path: trec.targets(path, QRELS, items=1000)), b"q1 Q0 d1 1 0.9 me\n"),
]


def one_input(data: bytes) -> None:
    """Parse one input; every exception but ours is a fault."""
    if data:
        try:
            PARSERS[data[0] % len(PARSERS)][0](data[1:])
        except UnsampleError:
            return


def main() -> None:
    """Run for some seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    begin = PLACE.parent / "begin"
    begin.mkdir()
    for at, (_, example) in enumerate(PARSERS):
        (begin / str(at)).write_bytes(bytes([at]) + example)
    # One long input is slow, and many short ones say more.
    options = [f"-max_total_time={chosen.seconds}", "-max_len=400", "-timeout=30"]
    atheris.Setup([sys.argv[0], str(begin), *options, "-print_final_stats=1"], one_input)
    print(f"trying {len(PARSERS)} parsers for {chosen.seconds} s", flush=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
