"""The forms of a decision, each read back."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from comparison_made import lists
from judged.diagnosis.gates import gate, parse_config

CONFIG = """
[[slice]]
name = "a|b <few>"
expression = "kind == 'few'"
[[check]]
measure = "RR"
margin = 0.1
[[check]]
measure = "P@1"
margin = 0.5
[[check]]
measure = "R@20"
margin = 0.1
[[check]]
measure = "RR"
slice = "a|b <few>"
margin = 0.1
[[guardrail]]
missing_topics = 0
"""
LINES = {"RR": 5, "P@1": 8, "R@20": 11, "RR in a|b <few>": 14, "missing topics": 18}
STATUSES = ["fail", "inconclusive", "pass", "inconclusive"]


def made(*, strict: bool = False, path: str = "conf/my gate.toml") -> Any:
    """Ranks 1 against 3 on two topics of three: RR loses 4/9, P@1 loses 2/3, all is found by 20."""
    old = [1] * 18
    new: list[int | None] = [1 if at % 3 == 0 else 3 for at in range(18)]
    qrels, runs = lists(old=old, new=new)
    config = parse_config(("[gate]\nstrict = true" if strict else "") + CONFIG, path=path)
    kinds = {topic: {"kind": "few" if at < 3 else "many"} for at, topic in enumerate(qrels)}
    return gate(qrels, {"old": runs["old"]}, {"new": runs["new"]}, config, attributes=kinds)


def test_what_is_written_below() -> None:
    assert [one.status for one in made().parts] == [*STATUSES, "pass"]


@pytest.mark.parametrize("strict", [False, True])
def test_junit(strict: bool) -> None:
    result = made(strict=strict)
    root = ET.fromstring(result.junit())  # noqa: S314
    (suite,) = root
    assert root.tag == "testsuites"
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 5, "failures": 3 if strict else 1, "errors": 0, "skipped": 0 if strict else 2}
    cases = suite.findall("testcase")
    assert [case.attrib["name"] for case in cases] == [one.name for one in result.parts]
    assert [case.attrib["classname"] for case in cases] == ["judged.gate.check"] * 4 + ["judged.gate.guardrail"]
    kinds = [case[0].tag for case in cases]
    unclear = "failure" if strict else "skipped"
    assert kinds == ["failure", unclear, "system-out", unclear, "system-out"]
    for case, one in zip(cases, result.parts, strict=True):
        assert (case[0].text if case[0].tag == "system-out" else case[0].attrib["message"]) == one.sentence


def test_junit_keeps_out_what_xml_cannot_hold() -> None:
    from dataclasses import replace

    broken = replace(made(), candidate="new\x00\x1b\ud800")
    root = ET.fromstring(broken.junit().encode())  # noqa: S314
    assert [one.attrib["value"] for one in root.iter("property")][1] == "new\ufffd\ufffd\ufffd"


@pytest.mark.parametrize("strict", [False, True])
def test_sarif(strict: bool) -> None:
    result = made(strict=strict)
    shift = int(strict)
    log = json.loads(result.sarif())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    open_ = [one for one in result.parts if one.status != "pass"]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    assert [found["message"]["text"] for found in run["results"]] == [one.sentence for one in open_]
    assert [found["level"] for found in run["results"]] == ["error", *["error" if strict else "warning"] * 2]
    for found, one in zip(run["results"], open_, strict=True):
        assert rules[found["ruleIndex"]] == found["ruleId"]
        (place,) = found["locations"]
        assert place["physicalLocation"] == {
            "artifactLocation": {"uri": "conf/my%20gate.toml"},
            "region": {"startLine": LINES[one.name] + shift},
        }
    prints = [found["partialFingerprints"]["judgedGate/v1"] for found in run["results"]]
    assert len(set(prints)) == 3


def test_sarif_outside_the_working_folder_and_without_a_file() -> None:
    found = json.loads(made(path="/elsewhere/gate.toml").sarif())["runs"][0]["results"][0]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///elsewhere/gate.toml"
    assert "locations" not in json.loads(made(path="").sarif())["runs"][0]["results"][0]


def test_json() -> None:
    result = made()
    read = json.loads(result.json())
    assert read == result.to_dict()
    assert (read["status"], read["passed"], read["exit_code"]) == ("fail", False, 1)
    first = read["checks"][0]
    assert first["difference"] == result.checks[0].difference == pytest.approx(-4 / 9)
    assert first["difference_ci"] == list(result.checks[0].interval)
    assert (first["name"], first["line"], first["loss"]) == ("RR", 5, -first["difference"])
    small = read["checks"][3]
    assert (small["n"], small["p"], small["difference_ci"], small["status"]) == (3, None, None, "inconclusive")
    assert read["guardrails"][0]["guardrail"]["missing_topics"] == 0
    assert read["config"]["slices"][0]["name"] == "a|b <few>"
    assert set(read["runs"]) == {"old", "new"}


def test_markdown() -> None:
    result = made()
    text = result.markdown()
    assert text.startswith(
        "### judged gate: FAIL\n\nFAIL: new against old: 1 of 4 checks failed.\n\n| status | measure |"
    )
    assert "| **fail** | RR | all | 18 | 1.0000 | 0.5556 |" in text
    assert "| pass | R@20 | all | 18 | 1.0000 | 1.0000 |" in text
    assert r"a\|b <few>" not in text
    assert r"a\|b &lt;few&gt;" in text
    assert text.count("<details>") == text.count("</details>") == 2 - (not result.warnings)
    assert f"{result.caption.replace('<', '&lt;')}." in text


def test_text_fits_the_width_and_is_coloured_where_it_is_asked() -> None:
    result = made()
    text = result.text()
    assert repr(result) == text
    assert text.startswith("FAIL: new against old: 1 of 4 checks failed.\n\nstatus ")
    assert max(map(len, result.text(60).splitlines())) <= 60
    coloured = result.text(colour=True)
    assert "\x1b[1;31mfail\x1b[0m" in coloured
    assert "\x1b[1;33minconclusive\x1b[0m" in coloured
    assert "\x1b[1;31mFAIL\x1b[0m" in coloured
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text


def test_the_same_inputs_give_the_same_files() -> None:
    first, second = made(), made()
    for form in ("text", "markdown", "json", "junit", "sarif"):
        assert getattr(first, form)() == getattr(second, form)()
