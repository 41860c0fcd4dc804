"""Files that survive a crash, and foreign files that are not trusted."""

from unsample._files._reading import (
    DAMAGED,
    check_unpacked,
    is_file,
    names_in,
    open_plain,
    read_arrays,
)
from unsample._files._writing import (
    check_writable,
    is_temporary,
    lock,
    lock_of,
    remove_leftovers,
    unwritable,
    write_atomically,
)

__all__ = [
    "DAMAGED",
    "check_unpacked",
    "check_writable",
    "is_file",
    "is_temporary",
    "lock",
    "lock_of",
    "names_in",
    "open_plain",
    "read_arrays",
    "remove_leftovers",
    "unwritable",
    "write_atomically",
]
