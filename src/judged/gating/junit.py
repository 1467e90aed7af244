"""A gate's decision as JUnit XML, which continuous integration shows as tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from judged.gating.check_result import CheckResult
    from judged.gating.guarding import GuardrailResult
    from judged.gating.result import GateResult

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
