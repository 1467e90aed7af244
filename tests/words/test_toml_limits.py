"""Every number of a configuration has a range, every list and every text a length, whichever file it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from judged.data.toml_files import parse_toml
from judged.diagnosis.gates import parse_config
from judged.errors import InputError
from judged.labels.asking.client import Endpoint
from judged.online.readers.mapping_file import read_mapping
from judged.online.watch.config import parse_watch
from judged.pipelines.experiments.plan import Plan
from judged.studies.design import first_design, parse_design
from judged.studies.questionnaires import Item

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOO_LARGE = {
    "1e400": "number from -1e+15",
    "-inf": "number from -1e+15",
    "nan": "number from -1e+15",
    "499999999999999999999": "number from -1e+15",
    "[1, [2, 1e16]]": "number from -1e+15",
    "[\n" + "0,\n" * 10_001 + "]": "at most 10,000",
    f'"""{chr(10).join(["x" * 4_000] * 26)}"""': "at most 100,000",
}


def in_file(read: Callable[[Path], Any]) -> Callable[[str, Path], Any]:
    def made(text: str, folder: Path) -> Any:
        path = folder / "x.toml"
        path.write_text(text)
        return read(path)

    return made


READERS: dict[str, Callable[[str, Path], Any]] = {
    "gate": lambda text, _: parse_config(text),
    "watch": lambda text, _: parse_watch(text),
    "study": lambda text, _: parse_design(text),
    "plan": in_file(Plan.of),
    "endpoint": in_file(Endpoint.read),
    "mapping": in_file(read_mapping),
}


@pytest.mark.parametrize("value", TOO_LARGE, ids=lambda value: value[:12])
@pytest.mark.parametrize("name", READERS)
def test_what_is_too_large_is_refused_with_its_key(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"number (is|has) ") as caught:
        READERS[name](f"number = {value}\n", tmp_path)
    assert TOO_LARGE[value] in str(caught.value)
    assert caught.value.line == 1


def test_limits_are_included() -> None:
    lines = "\n".join(["x" * 3_999] * 25)
    assert len(parse_toml(f'text = """{lines}x"""')["text"]) == 100_000
    many = [1] * 10_000
    assert parse_toml("numbers = [\n" + "1,\n" * 10_000 + "]") == {"numbers": many}
    assert parse_toml("n = -1e15\nm = 1000000000000000") == {"n": -1e15, "m": 10**15}
    for value in ("1000000000000001", "-1.0000000000000002e15"):
        with pytest.raises(InputError, match="number from"):
            parse_toml(f"n = {value}")


@pytest.mark.parametrize(
    ("table", "key", "least", "most"),
    [
        ("variant", "snippets", 0, 10_000), ("variant", "results", 1, 1_000), ("group", "participants", 1, 100_000),
        ("topics", "minutes", 0, 100_000), ("topics", "save", 0, 1_000), ("study", "seed", 0, 2**32),
    ],
)  # fmt: skip
def test_fields_of_a_study_have_ranges(table: str, key: str, least: int, most: int) -> None:
    design = first_design()
    header = f"[[{table}]]" if table in {"variant", "group"} else f"[{table}]"
    name = '\nname = "x"' if table in {"variant", "group"} else ""

    def read(value: int) -> Any:
        if header in design and not name:
            lines = [line for line in design.splitlines() if not line.startswith(f"{key} =")]
            return parse_design("\n".join(lines).replace(header, f"{header}\n{key} = {value}", 1))
        return parse_design(f"{design}\n{header}{name}\n{key} = {value}\n")

    for value in (least, most):
        read(value)
    for value in (least - 1, most + 1):
        with pytest.raises(InputError, match=rf"{key} is {value}"):
            read(value)


@pytest.mark.parametrize("scale", [(1.0, 4e14), (0.0, 1001.0), (-500.0, 501.0)])
def test_a_scale_has_at_most_1001_values(scale: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="at most 1,001 values"):
        Item("i", "?", scale, words=("low", "high"))
    assert len(Item("i", "?", (0.0, 1000.0), words=("low", "high")).values) == 1001
