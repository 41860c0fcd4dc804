"""What pytest must know inside Pyodide: which tests no browser can run, and how tests count."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

#: Tests import these at the top, and few of them use them.
_ABSENT = ("pandas", "polars", "pytrec_eval")
#: The command is not for browsers.
_COMMAND = "run"


class _Absent(ModuleType):
    """A library that may be imported, but ends the test that uses it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        pytest.skip(f"needs {self.__name__}, which is not in the browser")


for _name in _ABSENT:
    sys.modules[_name] = _Absent(_name)


def _taking_wide_indices(plain: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Return a function of numpy that takes 64 bits from tests; the package must see to its own."""

    def called(*given: Any, **more: Any) -> Any:
        if "/tests/" in sys._getframe(1).f_code.co_filename and len(given) > place:
            narrow = np.asarray(given[place]).astype(np.intp)
            given = (*given[:place], narrow, *given[place + 1 :])
        return plain(*given, **more)

    return called


def _no_thread(_: threading.Thread) -> None:
    pytest.skip("needs threads, not there in the browser")


threading.Thread.start = _no_thread
np.bincount = _taking_wide_indices(np.bincount, 0)
np.repeat = _taking_wide_indices(np.repeat, 1)


def pytest_configure() -> None:
    """Give hypothesis all the time it needs: everything takes longer here."""
    from hypothesis import settings

    settings.register_profile("browser", deadline=None)
    settings.load_profile("browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the command, processes or threads."""
    for item in items:
        source = inspect.getsource(getattr(item, "function", _Absent))
        wants = {
            "the command": _COMMAND in getattr(item, "fixturenames", ()),
            "processes": "subprocess." in source,
            "pytrec_eval": "ir_measures." in source,
            "threads": "threads" in source or "way_the_work_is_done" in item.name,
            "arrays of more than 2 GB": "plans" in item.name
            and "'users': 1000000000}" in item.name,
        }
        for what in (name for name, wanted in wants.items() if wanted):
            item.add_marker(pytest.mark.skip(reason=f"needs {what}, not there in the browser"))
