"""The tool that plants errors: does it plant what it says, and nothing where it should not?"""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
try:
    import mutate
    from mutation.mutations import mutants_of
finally:
    sys.path.remove(str(TOOLS))


def _mutated(body: str) -> set[str]:
    """Return what becomes of the lines of a function's body."""
    lines = ["def f(a, b):", *(f"    {line}" for line in body.splitlines())]
    return {mutant.mutated for mutant in mutants_of("x.py", "\n".join(lines).encode())}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return a + b", {"return a - b"}),
        ("return a ** b", {"return a * b"}),
        ("return (a + 1) * b", {"return (a - 1) * b", "return (a + 1) / b"}),
        ("return a < b", {"return a <= b", "return a >= b"}),
        ("return a is not None", {"return a is None"}),
        ("return a and b", {"return a or b"}),
        ("return not a", {"return (a)"}),
        ("return -a", {"return (a)"}),
        ("return 7", {"return 8", "return 6"}),
        ("return 0.5", {"return 1.5"}),
        ("return True", {"return False"}),
        ("return a[b:]", {"return a[(b) + 1:]"}),
        ("return a[1:]", {"return a[2:]", "return a[0:]"}),
        ("return min(a, b)", {"return max(a, b)"}),
        ("return g(a, b)", {"return g(b, a)"}),
        ("return a.sum(axis=0)", {"return a.mean(axis=0)", "return a.sum(axis=1)"}),
        ("return a.cut(b, side='left')", {"return a.cut(b, side='right')"}),
        ("a += b", {"a -= b", "pass"}),
        ("a[b] = b", {"pass"}),
        ("a = g(a)", {"pass"}),
        ("return a if b else 'x'", {"return a if (not b) else 'x'"}),
    ],
)
def test_mutants_of_a_line(line, expected):
    assert expected <= _mutated(line)


@pytest.mark.parametrize(
    "body",
    [
        '"""Take 1 + 2."""',
        "assert a < 1",
        "return 'text'",
        "return f'{a + 1}'",
        "c: int = a",
        "import math",
        "return a",
    ],
)
def test_text_types_and_asserts_are_left_alone(body):
    assert _mutated(body) == set()


def test_messages_are_left_alone_but_not_what_raises_them():
    assert _mutated("raise ValueError(f'{a + 1}', 1 + 2)") == {"pass"}


def test_equal_changes_in_a_function_are_told_apart():
    mutants = mutants_of("x.py", b"def f(a):\n    a += 1\n    a += 1\n")
    assert len({mutant.name for mutant in mutants}) == len(mutants)


def test_lines_say_where_a_change_is_felt():
    source = b"LIMIT = 3\ndef f(a=1):\n    if a:\n        return 5\n"
    found = {m.original: (m.lines, m.at_import) for m in mutants_of("x.py", source)}
    assert found["LIMIT = 3"] == ((), True)
    assert found["def f(a=1):"] == ((3, 4), True)
    assert found["if a:"] == ((3,), False)
    assert found["return 5"] == ((4,), False)


def test_mutants_of_the_package_compile_and_listed_ones_exist(monkeypatch):
    monkeypatch.chdir(mutate.ROOT)
    mutants = [mutant for room in mutate.ROOMS for mutant in mutate.all_mutants(room)]
    assert len({mutant.name for mutant in mutants}) == len(mutants) > 2000
    for mutant in mutants[::25]:
        compile(mutant.apply(Path(mutant.file).read_bytes()), mutant.file, "exec")
    assert mutate.stale(mutate.read_listed(mutate.LISTED), mutants) == []


def test_results_survive_a_line_cut_off(tmp_path):
    path = tmp_path / "results.jsonl"
    first, second = (mutate.Result(key, "m", "killed", "t", 0.1) for key in "ab")
    mutate.append(path, first)
    path.write_bytes(path.read_bytes() + b'{"key": "hal')
    mutate.append(path, second)
    assert mutate.read_results(path) == {"a": first, "b": second}
