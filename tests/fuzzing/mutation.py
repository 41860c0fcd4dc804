"""Inputs near valid ones: bytes, tokens, numbers and lines of an example changed at random."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["LONGEST", "Mutator", "repacked"]

#: Inputs stay this short: parsers are asked about form here (bombs have tests of their own).
LONGEST = 1 << 14

_NUMBER = re.compile(rb"-?\d++(?:\.\d++)?+")
_NUMBERS = (
    b"0", b"-0", b"1", b"-1", b"2", b"9", b"10", b"99", b"100", b"1.5", b"1e3", b"1E400",
    b"-1e-400", b"1e999999999", b"nan", b"NaN", b"inf", b"-Infinity", b"0x10", b"1_000",
    b"1,000", b"007",
    b"2147483648", b"4294967296", b"9007199254740993", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"1" * 400,
    b"9" * 5000, b"0." + b"3" * 400, b"1e-320", b"4611686018427387904", b"1000000000000",
    b"1000000000001", "٣".encode(), b"\xef\xbc\x91", "²".encode(),
)  # fmt: skip
_TEXTS = (
    b"", b" ", b"\0", b"\t", b"\r", b"\n", b"\r\n", b"\x0b", b"\x1c", b"\x85", b"'", b'"', b'""',
    b"\\", b",", b";", b"=", b"@", b"(", b")", b"[", b"]", b"{", b"}", b":", b"::", b"%s", b"{0}",
    b"true", b"false", b"null", b"None", b"NA", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff",
    b"\xed\xa0\x80", "\u2028".encode(), "\u202e".encode(), "ß".encode(), "İ".encode(),
    b"../../etc/passwd", b"C:\\", b"<script>", b"</script>", b"=1+1", b"\x1b[31m", b"\\ud800",
    b"2024-05-31", b"9999-12-31T23:59:59+14:00", b"[" * 2000, b'{"a":' * 500,
)  # fmt: skip


@dataclass(frozen=True)
class Mutator:
    """Changes examples; the same seed of ``random`` gives the same inputs."""

    random: Random
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()

    def new(self) -> bytes:
        """Return a changed example; one in fifty is an example as it is."""
        data = self.random.choice(self.seeds)
        return data if self.random.random() < 0.02 else self.changed(data)

    def changed(self, data: bytes) -> bytes:
        """Return ``data`` after a few changes, most often one or two."""
        for _ in range(min(1 + int(self.random.expovariate(0.7)), 12)):
            data = self.random.choice(_CHANGES)(self, data)[:LONGEST]
        return data

    # -- changes ----------------------------------------------------------------------------

    def flip_bit(self, data: bytes) -> bytes:
        place = self._place(data)
        return (
            data[:place]
            + bytes([self._byte(data, place) ^ (1 << self.random.randrange(8))])
            + (data[place + 1 :])
        )

    def set_byte(self, data: bytes) -> bytes:
        place = self._place(data)
        return data[:place] + bytes([self.random.randrange(256)]) + data[place + 1 :]

    def drop(self, data: bytes) -> bytes:
        start, stop = self._range(data)
        return data[:start] + data[stop:]

    def repeat(self, data: bytes) -> bytes:
        start, stop = self._range(data)
        times = self.random.choice((2, 2, 3, 10, 100))
        return data[:stop] + data[start:stop] * (times - 1) + data[stop:]

    def cut(self, data: bytes) -> bytes:
        return data[: self._place(data)]

    def insert(self, data: bytes) -> bytes:
        place = self._place(data)
        return data[:place] + self._word() + data[place:]

    def overwrite(self, data: bytes) -> bytes:
        start, stop = self._range(data)
        return data[:start] + self._word() + data[stop:]

    def splice(self, data: bytes) -> bytes:
        other = self.random.choice(self.seeds)
        return data[: self._place(data)] + other[self._place(other) :]

    def change_number(self, data: bytes) -> bytes:
        found = list(_NUMBER.finditer(data))
        if not found:
            return self.insert(data)
        match = self.random.choice(found)
        return data[: match.start()] + self.random.choice(_NUMBERS) + data[match.end() :]

    def shuffle_lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        one, other = (self.random.randrange(len(lines)) for _ in range(2))
        lines[one], lines[other] = lines[other], lines[one]
        return b"\n".join(lines)

    # -- inside -----------------------------------------------------------------------------

    def _word(self) -> bytes:
        kinds = [_NUMBERS, _TEXTS, self.tokens or _TEXTS]
        return self.random.choice(self.random.choice(kinds))

    def _place(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def _byte(self, data: bytes, place: int) -> int:
        return data[place] if place < len(data) else 0

    def _range(self, data: bytes) -> tuple[int, int]:
        start = self._place(data)
        longest = self.random.choice((1, 4, 16, 64, 1024))
        return start, min(len(data), start + 1 + self.random.randrange(longest))


_CHANGES: tuple[Callable[[Mutator, bytes], bytes], ...] = (
    Mutator.flip_bit,
    Mutator.set_byte,
    Mutator.drop,
    Mutator.repeat,
    Mutator.cut,
    Mutator.insert,
    Mutator.overwrite,
    Mutator.splice,
    Mutator.change_number,
    Mutator.change_number,
    Mutator.shuffle_lines,
)


def repacked(mutator: Mutator, archive: bytes) -> bytes:
    """Return a zip archive with one member changed and all checksums right.

    Bytes changed in the archive itself rarely come past its checksums, to what lies inside.
    """
    random = mutator.random
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        members = [(entry.filename, source.read(entry)) for entry in source.infolist()]
    chosen = random.randrange(len(members))
    name, content = members[chosen]
    match random.randrange(8):
        case 0:
            del members[chosen]
        case 1:
            members.append((name + random.choice(("", "x", "/", "\\..")), content))
        case 2:
            members[chosen] = (name, random.choice(members)[1])
        case 3:
            members[chosen] = (random.choice(("", "rank.npy", "x.txt", "../x.npy")), content)
        case _:
            members[chosen] = (name, mutator.changed(content))
    packed, names = io.BytesIO(), set()
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(packed, "w", method) as target:
        for member, content in members:
            written = member or "-"
            if written not in names:  # writing a name twice would warn
                target.writestr(zipfile.ZipInfo(written), content, compress_type=method)
            names.add(written)
    return packed.getvalue()
