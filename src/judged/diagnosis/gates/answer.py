"""What `gate` returns: the decision over all checks and guardrails."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote
from xml.etree import ElementTree as ET

from judged.diagnosis.gates.check_result import CheckResult, Status, number
from judged.results import Answer, Block, Sentences, counted, listed
from judged.results.table import ANY, COUNT, NUMBER, TEXT, Column, Show, Table, columns_of
from judged.results.text_formats import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.diagnosis.gates.config import GateConfig
    from judged.diagnosis.gates.guardrails import GuardrailResult
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    "loss": ("LossBeyondMargin", "The candidate lost more than the margin of this check."),
    "inconclusive": ("Inconclusive", "These topics can neither prove nor rule out a loss beyond the margin."),
    "guardrail": ("GuardrailBroken", "A number of the candidate is outside of what a guardrail allows."),
}


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


_COLOURS = {"fail": 31, "inconclusive": 33, "pass": 32}
_STATUS = re.compile(r"^(fail|inconclusive|pass)\b", re.MULTILINE | re.IGNORECASE)
_TESTS = {"randomisation": "paired randomisation test", "t": "paired t-test", "bounded": "bounded test"}
_NUMBER = Show(number, "float64")
_OF_CHECK = (
    "owner", "left_out", "min_topics", "level", "kind", "lower_is_better", "p", "adjusted", "p_safe", "detectable",
    "power", "correction", "test", "strict", "note", "family", "least_p", "large_loss", "max_share_of_large_losses",
    "identical", "unseen_loss", "unseen_gain", "sensitive", "few_topics", "bounded_p", "loss", "blocks", "sentence",
    "name", "line",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class GateResult(Answer):
    """Whether the candidate may take the baseline's place.

    Attributes
    ----------
    config : GateConfig
        What was asked.
    baseline, candidate : str
        The names of the runs.
    checks : tuple of CheckResult
        In the order of the configuration.
    guardrails : tuple of GuardrailResult
    scores : Scores
        Of both runs, which the checks are made of.
    notes : tuple of Note

    Examples
    --------
    >>> from judged.diagnosis.gates import Check, GateConfig, gate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> config = GateConfig((Check("RR", margin=0.05),))
    >>> gate(qrels, good, bad, config).status, gate(qrels, good, good, config).status
    ('fail', 'pass')
    """

    kind: ClassVar[str] = "gate"

    config: GateConfig
    baseline: str
    candidate: str
    checks: tuple[CheckResult, ...]
    guardrails: tuple[GuardrailResult, ...]
    scores: Scores
    notes: tuple[Note, ...] = ()

    @property
    def parts(self) -> tuple[CheckResult | GuardrailResult, ...]:
        """Checks and guardrails."""
        return self.checks + self.guardrails

    @property
    def status(self) -> Status:
        """``fail`` if anything blocks, else ``inconclusive`` if anything is, else ``pass``."""
        if any(part.blocks for part in self.parts):
            return "fail"
        return "inconclusive" if any(part.status == "inconclusive" for part in self.parts) else "pass"

    @property
    def passed(self) -> bool:
        """Whether nothing stands in the way: True also where a check that is not strict is inconclusive."""
        return self.status != "fail"

    @property
    def exit_code(self) -> int:
        """What the command ends with: 0, or 1 where something blocks."""
        return 0 if self.passed else 1

    @property
    def title(self) -> str:
        """The verdict."""
        return f"judged gate: {self.status.upper()}"

    @property
    def verdict(self) -> str:
        """Whether the gate passes, and why not."""
        failed = self._counted("fail", blocks=True)
        strict = self._counted("inconclusive", blocks=True)
        unclear = self._counted("inconclusive", blocks=False)
        pair = f"{self.candidate} against {self.baseline}"
        reasons = [f"{failed} failed{self._sensitive('fail')}"] if failed else []
        reasons += [f"{strict} inconclusive, which strict mode does not let pass"] if strict else []
        if reasons:
            return f"FAIL: {pair}: {'; '.join(reasons)}."
        if unclear:
            return f"INCONCLUSIVE: {pair}: nothing failed, and {unclear} could not be decided{self._sensitive('pass')}."
        kinds = [name for name, parts in self._kinds if parts]
        whole = f"all {listed([f'{name}s' for name in kinds])}" if len(self.parts) > 1 else f"its {kinds[0]}"
        return f"PASS: {pair}: {whole} passed{self._sensitive('pass')}."

    @property
    def _kinds(self) -> tuple[tuple[str, Sequence[CheckResult | GuardrailResult]], ...]:
        return ("check", self.checks), ("guardrail", self.guardrails)

    def _sensitive(self, status: Status) -> str:
        """Say how many checks that ended so are sensitive to a few topics; nothing for none."""
        count = sum(check.sensitive for check in self.checks if check.status == status)
        if not count:
            return ""
        done = "failed" if status == "fail" else "passed"
        return f" ({counted(count, 'check')} that {done} {'is' if count == 1 else 'are'} sensitive to a few topics)"

    def _counted(self, status: Status, *, blocks: bool) -> str:
        """Say how many of the checks and of the guardrails ended so; nothing for none."""
        counts = [
            (sum(part.status == status and part.blocks == blocks for part in parts), counted(len(parts), name))
            for name, parts in self._kinds
        ]
        said = [f"{count} of {every}" for count, every in counts if count]
        return listed(said) if said else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decision in one sentence, and one for each check and guardrail."""
        return self.verdict, *(part.sentence for part in self.parts)

    @property
    def caption(self) -> str:
        """By which rules it was decided."""
        config = self.config
        tested = sum(check.p == check.p for check in self.checks)
        if not self.checks:
            return "nothing is tested: guardrails are numbers that are compared as they stand"
        drawn = f", {config.resamples} resamples, seed {config.seed}" if config.test == "randomisation" else ""
        ratio = " (of ratios for geometric means)" if any(check.kind == "ratio" for check in self.checks) else ""
        several = config.correction != "none" and tested > 1
        by = f"p corrected by {config.correction.capitalize()} for {tested} checks" if several else "p not corrected"
        sides = "strict: an inconclusive check fails" if config.strict else "an inconclusive check does not fail"
        return (
            f"{_TESTS[config.test]}{ratio} of a loss beyond the margin, one-sided{drawn}; {by};"
            f" alpha = {config.alpha:g}; {1 - 2 * config.alpha:.0%} intervals; {sides}"
        )

    def facts(self) -> dict[str, Any]:
        """Give the decision, who was compared, by which configuration and what the scores rest on."""
        names = ("status", "passed", "exit_code", "baseline", "candidate")
        head = self.scores.provenance.to_dict()
        left_out = {"checks", "guardrails", "places"}
        config = {name: value for name, value in vars(self.config).items() if name not in left_out}
        config["path"] = self.config.path
        return head | {name: getattr(self, name) for name in names} | {"config": config, "caption": self.caption}

    def blocks(self) -> tuple[Block, ...]:
        """Give the verdict, the tables, what stands in the way, what passed, and the rules."""
        tables = [table for table in (self._checks(), self._guardrails()) if len(table) or table.name == "checks"]
        open_ = tuple(part.sentence for part in self.parts if part.status != "pass")
        fine = tuple(part.sentence for part in self.parts if part.status == "pass")
        return (
            Sentences((self.verdict,), "verdict"),
            *tables,
            *([Sentences(open_, "open")] if open_ else []),
            *([Sentences(fine, "passed_parts", "What passed", folded=bool(open_))] if fine else []),
            Sentences((f"{self.caption}.",), "rules"),
        )

    def _checks(self) -> Table:
        """Lay out one row a check: status, measure, slice, n, aggregates, difference, margin, topics that lost much."""
        checks = self.checks
        lower = ["(lower is better)" if check.lower_is_better else "" for check in checks]
        shares = [f"({check.large_losses / check.n:.0%})" if check.n else "" for check in checks]
        differences = [_interval(check) for check in checks]
        level = f"{1 - 2 * self.config.alpha:.0%}"
        columns = (
            Column(
                "status",
                [check.status for check in checks],
                TEXT,
                best=[check.status != "pass" for check in checks],
                beside=["(few topics)" if check.sensitive else "" for check in checks],
            ),
            Column("measure", [check.measure for check in checks], TEXT, beside=lower),
            *columns_of([check.check for check in checks], ("slice", TEXT)),
            *columns_of(checks, ("n", COUNT), ("baseline", NUMBER), ("candidate", NUMBER)),
            Column("difference", [check.difference for check in checks], ci=[c.interval for c in checks], only="data"),
            Column("shown_difference", differences, TEXT, f"difference [{level}]", only="people"),
            *columns_of(checks, "margin"),
            Column("shown_margin", [check.size(check.margin) for check in checks], TEXT, "margin", only="people"),
            Column("large_losses", [check.large_losses for check in checks], COUNT, "large losses", beside=shares),
            *columns_of(checks, *_OF_CHECK),
            Column("largest_losses", [check.largest_losses for check in checks], only="json"),
        )
        return Table("checks", columns, labels=3)

    def _guardrails(self) -> Table:
        """Lay out one row a guardrail."""
        rails = self.guardrails
        columns = (
            Column("status", [rail.status for rail in rails], TEXT, best=[rail.status != "pass" for rail in rails]),
            *columns_of(rails, ("name", TEXT, "guardrail"), ("baseline", _NUMBER), ("candidate", _NUMBER)),
            *columns_of(rails, ("limits", ANY, "allowed"), "blocks", "sentence"),
            Column("guardrail", [rail.guardrail for rail in rails], only="json"),
        )
        return Table("guardrails", columns, labels=2)

    def text(
        self,
        width: int | None = None,
        *,
        unfold: Iterable[str] = (),
        digits: int | None = None,
        colour: bool = False,
    ) -> str:
        """Write what the command prints: everything, with the statuses in colour."""
        whole = super().text(width, unfold=("passed_parts", *unfold), digits=digits, colour=colour)
        return _STATUS.sub(_coloured, whole) if colour else whole

    def markdown(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Write a comment for a pull request, or a summary of a job."""
        noted = markdown([Sentences(self.warnings, "warnings", "Warnings", folded=True)]) if self.notes else ""
        return "\n\n".join(filter(None, [f"### {self.title}", super().markdown(unfold=unfold, digits=digits), noted]))

    def junit(self) -> str:
        """Write JUnit XML: one test case a check; an inconclusive one counts as skipped, unless it is strict."""
        # What blocks is a failure; what is inconclusive, and does not block, is skipped. No times and dates: the same
        # decision gives the same file.
        failures = sum(part.blocks for part in self.parts)
        skipped = sum(part.status == "inconclusive" and not part.blocks for part in self.parts)
        counts = {"tests": len(self.parts), "failures": failures, "errors": 0}
        totals = {name: str(count) for name, count in counts.items()} | {"time": "0"}
        root = ET.Element("testsuites", {"name": "judged", **totals})
        suite = ET.SubElement(root, "testsuite", {"name": "judged gate", **totals, "skipped": str(skipped)})
        about = ET.SubElement(suite, "properties")
        for name, value in (("baseline", self.baseline), ("candidate", self.candidate), ("rules", self.caption)):
            ET.SubElement(about, "property", {"name": name, "value": _allowed(value)})
        for part in self.parts:
            _case(suite, part)
        ET.indent(root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")

    def sarif(self) -> str:
        """Write SARIF 2.1.0: one result for each check that fails or is inconclusive, at its line of the file."""
        names = list(_RULES)
        driver = {
            "name": "judged",
            "version": self.scores.versions.get("judged", ""),
            "rules": [
                {"id": f"judged-gate/{key}", "name": name, "shortDescription": {"text": text}}
                for key, (name, text) in _RULES.items()
            ],
        }
        run: dict[str, Any] = {
            "tool": {"driver": driver},
            "invocations": [{"executionSuccessful": True, "exitCode": self.exit_code}],
            "results": [_result(part, names, self.config.path) for part in self.parts if part.status != "pass"],
            "columnKind": "unicodeCodePoints",
        }
        return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _interval(check: CheckResult) -> str:
    limits = check.interval and [check.signed(end, 3) for end in check.interval]
    return check.signed(check.difference) + (f" [{limits[0]}, {limits[1]}]" if limits else "")


def _coloured(status: re.Match[str]) -> str:
    return f"\x1b[1;{_COLOURS[status[0].lower()]}m{status[0]}\x1b[0m"
