"""Files as new users bring them are answered at the first command, or with a message whose command works."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from command_line import Ended

FOLDER = Path(__file__).parent
CASES = {case["id"]: case for case in tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))["case"]}
FIXES = {"swapped_columns": "--columns run.query_id=doc_id,run.doc_id=query_id"}
"""Options that the message of the first command proposes, and with which the command gives the expected values."""

REFUSED = {
    "swapped_files": "swap the two files",
    "msearch_unnamed": "does not name its queries",
    "abtest_table": "a table of sums per user and variant",
    "gsc_total": "it has sums per query",
    "phoenix_cut": "spans.jsonl:12",
}
"""Files that are refused, and a part of the message that names the problem."""

DEFINED: dict[str, dict[str, float]] = {
    "ubi_zero_based": {"PageCTR": 4 / 5, "ClicksPerPage": 6 / 5},
    "ga4_bigquery": {"PageCTR": 4 / 6, "ClicksPerPage": 5 / 6},
    "seconds_and_millis": {"PageCTR": 4 / 5, "ClicksPerPage": 1.0},
    "snowplow_twice": {"PageCTR": 3 / 5, "ClicksPerPage": 4 / 5},
}
"""Values where the case and judged define a metric differently: those of judged leave out pages without results."""

NOT_PRINTED = {
    "beir_folder": {"documents", "queries"},
    "ga4_bigquery": {"events"},
    "algolia_events": {"events"},
    "snowplow_twice": {"events"},
}
"""Expected facts that the command of the case does not print."""


def numbers_in(value: Any) -> Iterator[float]:
    """Yield all numbers in parsed JSON."""
    if isinstance(value, dict):
        for element in value.values():
            yield from numbers_in(element)
    elif isinstance(value, list):
        for element in value:
            yield from numbers_in(element)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def expected_numbers(case: dict[str, Any]) -> Iterator[float]:
    for name, value in (case["expected"] | DEFINED.get(case["id"], {})).items():
        if name not in NOT_PRINTED.get(case["id"], ()):
            yield from value.values() if isinstance(value, dict) else [value]


def missing_numbers(case: dict[str, Any], done: Ended) -> list[float]:
    """Return the expected numbers that are not in the JSON output."""
    assert done.code == 0, done.err
    printed = list(numbers_in(json.loads(done.out)))
    return [value for value in expected_numbers(case) if not any(abs(value - number) < 1.1e-6 for number in printed)]


@pytest.mark.filterwarnings("always::judged.errors.JudgedWarning")
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_file_of_a_user(name: str, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.chdir(FOLDER / "files" / name)
    arguments = [*shlex.split(case["command"])[1:], "--format", "json"]
    done = run(*arguments)
    if name in REFUSED:
        assert (done.code, done.out) == (2, "")
        assert REFUSED[name] in done.err
        assert case["refusal_ok"]
    elif name in FIXES:
        assert case["refusal_ok"]
        option = FIXES[name].split()[0]
        assert option in done.err + done.out
        assert missing_numbers(case, run(*arguments, *shlex.split(FIXES[name]))) == []
    else:
        assert missing_numbers(case, done) == []


def test_at_least_54_files_are_answered() -> None:
    assert len(CASES) == 60
    assert len(CASES) - len(REFUSED) - len(FIXES) >= 54
