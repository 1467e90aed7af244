"""A gate's decision as CI reads it: JUnit XML, and SARIF 2.1.0, which code hosts show beside the changed lines."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from judged.diagnosis.gates.answer import GateResult
    from judged.diagnosis.gates.check_result import CheckResult
    from judged.diagnosis.gates.guardrails import GuardrailResult

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    "loss": ("LossBeyondMargin", "The candidate lost more than the margin of this check."),
    "inconclusive": ("Inconclusive", "These topics can neither prove nor rule out a loss beyond the margin."),
    "guardrail": ("GuardrailBroken", "A number of the candidate is outside of what a guardrail allows."),
}


def sarif(result: GateResult) -> str:
    """Write one result for each check and guardrail that did not pass: an error if it blocks, else a warning."""
    # Its place is the line of the configuration where it is declared.
    names = list(_RULES)
    found = [_result(one, names, result.config.path) for one in result.parts if one.status != "pass"]
    driver = {
        "name": "judged",
        "version": result.scores.versions.get("judged", ""),
        "rules": [
            {"id": f"judged-gate/{key}", "name": name, "shortDescription": {"text": text}}
            for key, (name, text) in _RULES.items()
        ],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "exitCode": result.exit_code}],
        "results": found,
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _result(one: CheckResult | GuardrailResult, names: list[str], path: str) -> dict[str, Any]:
    kind = "loss" if one.status == "fail" else "inconclusive"
    kind = kind if one.table == "check" else one.table
    made: dict[str, Any] = {
        "ruleId": f"judged-gate/{kind}",
        "ruleIndex": names.index(kind),
        "level": "error" if one.blocks else "warning",
        "message": {"text": one.sentence},
        "partialFingerprints": {"judgedGate/v1": hashlib.sha256(f"{kind}:{one.name}".encode()).hexdigest()[:32]},
    }
    if path:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
        if one.line:
            place["region"] = {"startLine": one.line}
        made["locations"] = [{"physicalLocation": place}]
    return made


def _uri(path: str) -> str:
    """Give a path as a reference, relative to the working folder if it lies in it: that is where a repository is."""
    full = Path(os.path.abspath(path))  # noqa: PTH100  # links stay: their targets may lie elsewhere
    here = Path.cwd()
    if full.is_relative_to(here):
        return quote(PurePath(full.relative_to(here)).as_posix())
    return full.as_uri()


_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: GateResult) -> str:
    """Write one test case a check and a guardrail."""
    # What blocks is a failure; what is inconclusive, and does not block, is skipped. No times and dates: the same
    # decision gives the same file.
    failures = sum(one.blocks for one in result.parts)
    skipped = sum(one.status == "inconclusive" and not one.blocks for one in result.parts)
    counts = {"tests": len(result.parts), "failures": failures, "errors": 0}
    totals = {name: str(count) for name, count in counts.items()} | {"time": "0"}
    root = ET.Element("testsuites", {"name": "judged", **totals})
    suite = ET.SubElement(root, "testsuite", {"name": "judged gate", **totals, "skipped": str(skipped)})
    about = ET.SubElement(suite, "properties")
    for name, value in (("baseline", result.baseline), ("candidate", result.candidate), ("rules", result.caption)):
        ET.SubElement(about, "property", {"name": name, "value": _allowed(value)})
    for one in result.parts:
        _case(suite, one)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def _case(suite: ET.Element, one: CheckResult | GuardrailResult) -> None:
    named = {"name": _allowed(one.name), "classname": f"judged.gate.{one.table}", "time": "0"}
    case = ET.SubElement(suite, "testcase", named)
    said = _allowed(one.sentence)
    if one.blocks:
        ET.SubElement(case, "failure", {"message": said, "type": one.status}).text = said
    elif one.status == "inconclusive":
        ET.SubElement(case, "skipped", {"message": said})
    else:
        ET.SubElement(case, "system-out").text = said


def _allowed(text: str) -> str:
    """Replace characters that XML has no place for."""
    return _FORBIDDEN.sub("\ufffd", text)
