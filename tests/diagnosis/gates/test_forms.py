"""Output formats of a gate result, each parsed again."""

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


def gate_result(*, strict: bool = False, path: str = "conf/my gate.toml") -> Any:
    """Ranks 1 against 3 on two of three topics: RR loses 4/9, P@1 loses 2/3, and R@20 is equal."""
    baseline = [1] * 18
    candidate: list[int | None] = [1 if i % 3 == 0 else 3 for i in range(18)]
    qrels, runs = lists(old=baseline, new=candidate)
    config = parse_config(("[gate]\nstrict = true" if strict else "") + CONFIG, path=path)
    kinds = {topic: {"kind": "few" if i < 3 else "many"} for i, topic in enumerate(qrels)}
    return gate(qrels, {"old": runs["old"]}, {"new": runs["new"]}, config, attributes=kinds)


def test_expected_statuses() -> None:
    assert [part.status for part in gate_result().parts] == [*STATUSES, "pass"]


@pytest.mark.parametrize("strict", [False, True])
def test_junit(strict: bool) -> None:
    result = gate_result(strict=strict)
    root = ET.fromstring(result.junit())  # noqa: S314
    (suite,) = root
    assert root.tag == "testsuites"
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 5, "failures": 3 if strict else 1, "errors": 0, "skipped": 0 if strict else 2}
    cases = suite.findall("testcase")
    assert [case.attrib["name"] for case in cases] == [part.name for part in result.parts]
    assert [case.attrib["classname"] for case in cases] == ["judged.gate.check"] * 4 + ["judged.gate.guardrail"]
    kinds = [case[0].tag for case in cases]
    unclear = "failure" if strict else "skipped"
    assert kinds == ["failure", unclear, "system-out", unclear, "system-out"]
    for case, part in zip(cases, result.parts, strict=True):
        assert (case[0].text if case[0].tag == "system-out" else case[0].attrib["message"]) == part.sentence


def test_junit_keeps_out_what_xml_cannot_hold() -> None:
    from dataclasses import replace

    broken = replace(gate_result(), candidate="new\x00\x1b\ud800")
    root = ET.fromstring(broken.junit().encode())  # noqa: S314
    assert [element.attrib["value"] for element in root.iter("property")][1] == "new\ufffd\ufffd\ufffd"


@pytest.mark.parametrize("strict", [False, True])
def test_sarif(strict: bool) -> None:
    result = gate_result(strict=strict)
    shift = int(strict)
    log = json.loads(result.sarif())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    unresolved = [part for part in result.parts if part.status != "pass"]
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    assert [entry["message"]["text"] for entry in run["results"]] == [part.sentence for part in unresolved]
    assert [entry["level"] for entry in run["results"]] == ["error", *["error" if strict else "warning"] * 2]
    for entry, part in zip(run["results"], unresolved, strict=True):
        assert rules[entry["ruleIndex"]] == entry["ruleId"]
        (location,) = entry["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "conf/my%20gate.toml"},
            "region": {"startLine": LINES[part.name] + shift},
        }
    prints = [entry["partialFingerprints"]["judgedGate/v1"] for entry in run["results"]]
    assert len(set(prints)) == 3


def test_sarif_outside_the_working_folder_and_without_a_file() -> None:
    entry = json.loads(gate_result(path="/elsewhere/gate.toml").sarif())["runs"][0]["results"][0]
    assert entry["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///elsewhere/gate.toml"
    assert "locations" not in json.loads(gate_result(path="").sarif())["runs"][0]["results"][0]


def test_json() -> None:
    result = gate_result()
    parsed = json.loads(result.json())
    assert parsed == result.to_dict()
    assert (parsed["status"], parsed["passed"], parsed["exit_code"]) == ("fail", False, 1)
    first = parsed["checks"][0]
    assert first["difference"] == result.checks[0].difference == pytest.approx(-4 / 9)
    assert first["difference_ci"] == list(result.checks[0].interval)
    assert (first["name"], first["line"], first["loss"]) == ("RR", 5, -first["difference"])
    small = parsed["checks"][3]
    assert (small["n"], small["p"], small["difference_ci"], small["status"]) == (3, None, None, "inconclusive")
    assert parsed["guardrails"][0]["guardrail"]["missing_topics"] == 0
    assert parsed["config"]["slices"][0]["name"] == "a|b <few>"
    assert set(parsed["runs"]) == {"old", "new"}


def test_markdown() -> None:
    result = gate_result()
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


def test_text_fits_the_width_and_is_colored_on_request() -> None:
    result = gate_result()
    text = result.text()
    assert repr(result) == text
    assert text.startswith("FAIL: new against old: 1 of 4 checks failed.\n\nstatus ")
    assert max(map(len, result.text(60).splitlines())) <= 60
    colored = result.text(color=True)
    assert "\x1b[1;31mfail\x1b[0m" in colored
    assert "\x1b[1;33minconclusive\x1b[0m" in colored
    assert "\x1b[1;31mFAIL\x1b[0m" in colored
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text


def test_the_same_inputs_give_the_same_files() -> None:
    first, second = gate_result(), gate_result()
    for method in ("text", "markdown", "json", "junit", "sarif"):
        assert getattr(first, method)() == getattr(second, method)()
