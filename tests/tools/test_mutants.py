import json
import subprocess
import sys
from pathlib import Path

import mutants
import pytest
from mutation.places import find_places, replaced_lines

TOOL = Path(__file__).parents[2] / "tools" / "mutants.py"

SOURCE = """
def add(a, b) -> int:
    return a + b


def multiply(a, b) -> int:
    return a * b


def is_zero(a) -> bool:
    return a == b
"""
TESTS = """
from small.arithmetic import add, multiply

def test_add():
    assert add(3, 2) == 5

def test_multiply():
    assert multiply(3, 1) == 3
"""


def changes(source: str) -> set[str]:
    """Return what becomes of the last line of a source."""
    text = source.encode()
    last = source.rstrip().rpartition("\n")[2].split()
    return {
        replaced_lines(text, place, replacement)[1]
        for place in find_places(text)
        for replacement in place.replacements
        if replaced_lines(text, place, replacement)[0].split() == last
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a + b", {"x = a - b"}),
        ("x = (a) ** (b)", {"x = (a) * (b)"}),
        ("x = a // 3", {"x = a * 3", "x = a / 3", "x = a // 4", "x = a // 6"}),
        ("x = a % b", {"x = a * b"}),
        ("x = a <= b < c", {"x = a < b < c", "x = a > b < c", "x = a <= b <= c", "x = a <= b >= c"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a is b", {"x = a is not b"}),
        ("x = a == b and c or d", {"x = a != b and c or d", "x = a == b or c or d", "x = a == b and c and d"}),
        ("x = 0, 1, 2.5, True", {"x = 1, 1, 2.5, True", "x = 0, 2, 2.5, True", "x = 0, 1, 3.5, True",
                                  "x = 0, 1, 5.0, True", "x = 0, 1, 2.5, False"}),
        ("x = -a", {"x = a"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if not (a)]"}),
        ("x = a if b else c", {"x = a if not (b) else c"}),
        ("f(a)", {"pass"}),
        ("x += a", {"x -= a", "pass"}),
        ("def f():\n    return a", {"return None"}),
        ("def f() -> int | None:\n    return a", {"return None"}),
        ("def f() -> int:\n    return a", set()),
        ("x = 'ä' + f'{a + 1}'", set()),
        ("x = é + b", {"x = é - b"}),
        ("x: Literal[1] = 1", {"x: Literal[1] = 2"}),
        ("x: int | None", set()),
        ("def f():\n    raise ValueError(a + 1)", set()),
        ("def f(a: Literal[0] = 1) -> Literal[2]: ...", {"def f(a: Literal[0] = 2) -> Literal[2]: ..."}),
        ("def f():\n    'Return 1.'", set()),
        ("x = isinstance(a + b, int | str)", {"x = isinstance(a - b, int | str)"}),
        ("x = cast(int | str, a + b)", {"x = cast(int | str, a - b)"}),
        ("x = zip(a, b, strict=True)", set()),
    ],
)  # fmt: skip
def test_every_kind_of_place_has_its_replacements(source: str, expected: set[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if a < 1:\n    f()", {"if a <= 1:", "if a >= 1:", "if a < 2:", "if not (a < 1):", "pass"}),
        ("if not a:\n    f()", {"if a:", "pass"}),
    ],
)
def test_conditions_are_negated_once(source: str, expected: set[str]) -> None:
    text = source.encode()
    assert {
        replaced_lines(text, place, new)[1] for place in find_places(text) for new in place.replacements
    } == expected


def test_a_place_knows_the_lines_whose_execution_reaches_it() -> None:
    source = b"def f(a):\n    if (a >\n            1):\n        return [\n            a + 1,\n        ]\n"
    lines = {source[place.start : place.end]: (place.line, place.first, place.last) for place in find_places(source)}
    assert lines[b">"] == (2, 2, 3)
    assert lines[b"+"] == (5, 4, 6)


def test_wilson_agrees_with_a_published_interval() -> None:
    """Newcombe (1998), table I: 81 of 263 has [0.2553, 0.3662]."""
    assert mutants.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert mutants.wilson(0, 10)[0] == pytest.approx(0.0, abs=1e-12)
    assert mutants.wilson(10, 10)[1] == pytest.approx(1.0)


@pytest.mark.slow
def test_a_change_is_killed_if_a_test_notices_it(tmp_path: Path) -> None:
    package, tests, result = tmp_path / "src" / "small", tmp_path / "tests", tmp_path / "result.json"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").touch()
    (package / "arithmetic.py").write_text(SOURCE)
    (tests / "test_arithmetic.py").write_text(TESTS)
    command = [sys.executable, str(TOOL), "--root", str(tmp_path), "--packages", "arithmetic.py", "--jobs", "1"]
    done = subprocess.run([*command, "--json", str(result)], check=True, capture_output=True, text=True)
    outcomes = {row["new"]: row["outcome"] for row in json.loads(result.read_text())["outcomes"]}
    assert outcomes == {"return a - b": "killed", "return a / b": "survived", "return a != b": "not executed"}
    assert "src/small/arithmetic.py:7 (2 tests)\n  - return a * b\n  + return a / b" in done.stdout
    assert (package / "arithmetic.py").read_text() == SOURCE
