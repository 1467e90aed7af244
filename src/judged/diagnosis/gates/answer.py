"""Result of `gate`: the decision over all checks and guardrails, with JUnit and SARIF output."""

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

from judged.diagnosis.gates.check_result import CheckResult, Status, format_number
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
    "inconclusive": (
        "Inconclusive",
        "A loss larger than the margin is neither significant nor ruled out on these topics.",
    ),
    "guardrail": ("GuardrailBroken", "A value of the candidate violates a guardrail."),
}


# The fingerprint identifies a result across runs, even if its line or its numbers have changed.
def _sarif_result(part: CheckResult | GuardrailResult, rule_ids: list[str], path: str) -> dict[str, Any]:
    rule = "loss" if part.status == "fail" else "inconclusive"
    rule = rule if part.config_table == "check" else part.config_table
    result: dict[str, Any] = {
        "ruleId": f"judged-gate/{rule}",
        "ruleIndex": rule_ids.index(rule),
        "level": "error" if part.blocks else "warning",
        "message": {"text": part.sentence},
        "partialFingerprints": {"judgedGate/v1": hashlib.sha256(f"{rule}:{part.name}".encode()).hexdigest()[:32]},
    }
    if path:
        location: dict[str, Any] = {"artifactLocation": {"uri": _sarif_uri(path)}}
        if part.line:
            location["region"] = {"startLine": part.line}
        result["locations"] = [{"physicalLocation": location}]
    return result


def _sarif_uri(path: str) -> str:
    """Return a path as a URI, relative to the working directory if inside it, as CI runs in the repository."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  # not Path.resolve: the target of a symbolic link may be outside of the repository
    working_folder = Path.cwd()
    if absolute.is_relative_to(working_folder):
        return quote(PurePath(absolute.relative_to(working_folder)).as_posix())
    return absolute.as_uri()


_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _add_test_case(suite: ET.Element, part: CheckResult | GuardrailResult) -> None:
    attributes = {"name": _replace_forbidden(part.name), "classname": f"judged.gate.{part.config_table}", "time": "0"}
    case = ET.SubElement(suite, "testcase", attributes)
    sentence = _replace_forbidden(part.sentence)
    if part.blocks:
        ET.SubElement(case, "failure", {"message": sentence, "type": part.status}).text = sentence
    elif part.status == "inconclusive":
        ET.SubElement(case, "skipped", {"message": sentence})
    else:
        ET.SubElement(case, "system-out").text = sentence


def _replace_forbidden(text: str) -> str:
    """Replace characters that XML 1.0 does not allow."""
    return _FORBIDDEN.sub("\ufffd", text)


_COLOR_CODES = {"fail": 31, "inconclusive": 33, "pass": 32}
_STATUS_WORD = re.compile(r"^(fail|inconclusive|pass)\b", re.MULTILINE | re.IGNORECASE)
_TESTS = {"randomization": "paired randomization test", "t": "paired t-test", "bounded": "bounded test"}
_NUMBER = Show(format_number, "float64")
_CHECK_COLUMNS = (
    "owner", "left_out", "min_topics", "level", "kind", "lower_is_better", "p", "adjusted", "p_safe", "detectable",
    "power", "correction", "test", "strict", "note", "family", "smallest_p", "large_loss", "max_share_of_large_losses",
    "identical", "unsampled_loss", "unsampled_gain", "sensitive", "few_topics", "bounded_p", "loss", "blocks",
    "sentence", "name", "line",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class GateResult(Answer):
    """Decision whether the candidate may replace the baseline.

    Attributes
    ----------
    config : GateConfig
        Configuration of the gate.
    baseline, candidate : str
        Names of the runs.
    checks : tuple of CheckResult
        In the order of the configuration.
    guardrails : tuple of GuardrailResult
        In the order of the configuration.
    scores : Scores
        Scores of both runs that the checks compare.
    notes : tuple of Note
        Warnings about the runs and the configuration.

    Examples
    --------
    >>> from judged.diagnosis.gates import Check, GateConfig, gate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(12)}
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
        """Results of all checks and guardrails."""
        return self.checks + self.guardrails

    @property
    def status(self) -> Status:
        """``fail`` if any part blocks, else ``inconclusive`` if any is inconclusive, else ``pass``."""
        if any(part.blocks for part in self.parts):
            return "fail"
        return "inconclusive" if any(part.status == "inconclusive" for part in self.parts) else "pass"

    @property
    def passed(self) -> bool:
        """Whether no part blocks. Also True if a check that is not strict is inconclusive."""
        return self.status != "fail"

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or 1 if any part blocks."""
        return 0 if self.passed else 1

    @property
    def title(self) -> str:
        """Name of the command and status."""
        return f"judged gate: {self.status.upper()}"

    @property
    def verdict(self) -> str:
        """Status of the gate with the number of parts that caused it."""
        failed = self._count_text("fail", blocks=True)
        strict = self._count_text("inconclusive", blocks=True)
        unclear = self._count_text("inconclusive", blocks=False)
        pair = f"{self.candidate} against {self.baseline}"
        reasons = [f"{failed} failed{self._count_with_few_deciding_topics('fail')}"] if failed else []
        reasons += [f"{strict} inconclusive, which fails in strict mode"] if strict else []
        if reasons:
            return f"FAIL: {pair}: {'; '.join(reasons)}."
        if unclear:
            sensitive = self._count_with_few_deciding_topics("pass")
            effect = "An inconclusive check does not block the release, unless --strict is used."
            undecided = f"no check or guardrail failed, but {unclear} could not be decided{sensitive}"
            return f"INCONCLUSIVE: {pair}: {undecided}. {effect}"
        kinds = [name for name, parts in self._kinds if parts]
        passed = f"all {listed([f'{name}s' for name in kinds])}" if len(self.parts) > 1 else f"the only {kinds[0]}"
        return f"PASS: {pair}: {passed} passed{self._count_with_few_deciding_topics('pass')}."

    @property
    def _kinds(self) -> tuple[tuple[str, Sequence[CheckResult | GuardrailResult]], ...]:
        return ("check", self.checks), ("guardrail", self.guardrails)

    def _count_with_few_deciding_topics(self, status: Status) -> str:
        count = sum(check.sensitive for check in self.checks if check.status == status)
        if not count:
            return ""
        verb = "failed" if status == "fail" else "passed"
        return f" ({counted(count, 'check')} that {verb} {'is' if count == 1 else 'are'} sensitive to a few topics)"

    def _count_text(self, status: Status, *, blocks: bool) -> str:
        counts = [
            (sum(part.status == status and part.blocks == blocks for part in parts), counted(len(parts), name))
            for name, parts in self._kinds
        ]
        texts = [f"{count} of {total}" for count, total in counts if count]
        return listed(texts) if texts else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Decision of the gate, then one sentence per check and guardrail."""
        return self.verdict, *(part.sentence for part in self.parts)

    @property
    def caption(self) -> str:
        """Test, correction, and error rate of the decision."""
        config = self.config
        tested = sum(check.p == check.p for check in self.checks)  # a NaN p-value is not equal to itself
        if not self.checks:
            return "no significance test: guardrails compare the values with their limits"
        resampling = f", {config.resamples} resamples, seed {config.seed}" if config.test == "randomization" else ""
        ratio = (
            " (geometric means are compared by their ratio)"
            if any(check.kind == "ratio" for check in self.checks)
            else ""
        )
        corrected = f"corrected by {config.correction.capitalize()} for {tested} checks"
        is_corrected = config.correction != "none" and tested > 1
        p_text = f"The p-values are {corrected if is_corrected else 'not corrected'}"
        intervals = f"{1 - 2 * config.alpha:.0%} CIs{', not corrected' if is_corrected else ''}"
        strictness = "strict: an inconclusive check fails" if config.strict else "an inconclusive check does not fail"
        return (
            f"one-sided {_TESTS[config.test]}{ratio}{resampling}. A small p-value means that the loss is larger"
            f" than the margin. {p_text}; alpha = {config.alpha:g}; {intervals}; {strictness}"
        )

    def facts(self) -> dict[str, Any]:
        """Return the decision, the runs, the configuration, and the provenance of the scores."""
        names = ("status", "passed", "exit_code", "baseline", "candidate")
        provenance = self.scores.provenance.to_dict()
        excluded = {"checks", "guardrails", "source_lines"}
        config = {name: value for name, value in vars(self.config).items() if name not in excluded}
        config["path"] = self.config.path
        return provenance | {name: getattr(self, name) for name in names} | {"config": config, "caption": self.caption}

    def blocks(self) -> tuple[Block, ...]:
        """Return the verdict, the tables, the sentences by status, and the rules."""
        tables = [table for table in (self._checks(), self._guardrails()) if len(table) or table.name == "checks"]
        unresolved = tuple(part.sentence for part in self.parts if part.status != "pass")
        passed = tuple(part.sentence for part in self.parts if part.status == "pass")
        return (
            Sentences((self.verdict,), "verdict"),
            *tables,
            *([Sentences(unresolved, "open")] if unresolved else []),
            *([Sentences(passed, "passed_parts", "Passed checks", folded=bool(unresolved))] if passed else []),
            Sentences((f"{self.caption}.", *self._source), "rules"),
        )

    @property
    def _source(self) -> tuple[str, ...]:
        return (f"Configuration: {self.config.path}.",) if self.config.path else ()

    def _checks(self) -> Table:
        checks, intervals = self.checks, [check.interval for check in self.checks]
        margins = [check.format_size(check.margin) for check in checks]
        lower = ["(lower is better)" if check.lower_is_better else "" for check in checks]
        shares = [f"({check.large_losses / check.n:.0%})" if check.n else "" for check in checks]
        differences = [_difference_text(check) for check in checks]
        level = f"{1 - 2 * self.config.alpha:.0%}"
        columns = (
            Column(
                "status",
                [check.status for check in checks],
                TEXT,
                best=[check.status != "pass" for check in checks],
                details=["(few topics)" if check.sensitive else "" for check in checks],
            ),
            Column("measure", [check.measure for check in checks], TEXT, details=lower),
            *columns_of([check.check for check in checks], ("slice", TEXT)),
            *columns_of(checks, ("n", COUNT), ("baseline", NUMBER), ("candidate", NUMBER)),
            Column("difference", [check.difference for check in checks], ci=intervals, only="data"),
            Column("shown_difference", differences, TEXT, f"difference [{level}]", only="people"),
            *columns_of(checks, "margin"),
            Column("shown_margin", margins, TEXT, "margin", only="people"),
            Column("large_losses", [check.large_losses for check in checks], COUNT, "large losses", details=shares),
            *columns_of(checks, *_CHECK_COLUMNS),
            Column("largest_losses", [check.largest_losses for check in checks], only="json"),
        )
        return Table("checks", columns, labels=3)

    def _guardrails(self) -> Table:
        guardrails, statuses = self.guardrails, [guardrail.status for guardrail in self.guardrails]
        columns = (
            Column("status", statuses, TEXT, best=[status != "pass" for status in statuses]),
            *columns_of(guardrails, ("name", TEXT, "guardrail"), ("baseline", _NUMBER), ("candidate", _NUMBER)),
            *columns_of(guardrails, ("limits", ANY, "allowed"), "blocks", "sentence"),
            Column("guardrail", [guardrail.guardrail for guardrail in guardrails], only="json"),
        )
        return Table("guardrails", columns, labels=2)

    def text(
        self, width: int | None = None, *, unfold: Iterable[str] = (), digits: int | None = None, color: bool = False
    ) -> str:
        """Render the output of the command, optionally with colored statuses."""
        rendered = super().text(width, unfold=("passed_parts", *unfold), digits=digits, color=color)
        return _STATUS_WORD.sub(_color_status, rendered) if color else rendered

    def markdown(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Render a comment for a pull request or a job summary."""
        warnings = markdown([Sentences(self.warnings, "warnings", "Warnings", folded=True)]) if self.notes else ""
        return "\n\n".join(
            filter(None, [f"### {self.title}", super().markdown(unfold=unfold, digits=digits), warnings])
        )

    def junit(self) -> str:
        """Render JUnit XML with one test case per part. Inconclusive parts that do not block are skipped."""
        # No times and dates, so that the same decision gives the same file.
        failures = sum(part.blocks for part in self.parts)
        skipped = sum(part.status == "inconclusive" and not part.blocks for part in self.parts)
        counts = {"tests": len(self.parts), "failures": failures, "errors": 0}
        totals = {name: str(count) for name, count in counts.items()} | {"time": "0"}
        root = ET.Element("testsuites", {"name": "judged", **totals})
        suite = ET.SubElement(root, "testsuite", {"name": "judged gate", **totals, "skipped": str(skipped)})
        properties = ET.SubElement(suite, "properties")
        for name, value in (("baseline", self.baseline), ("candidate", self.candidate), ("rules", self.caption)):
            ET.SubElement(properties, "property", {"name": name, "value": _replace_forbidden(value)})
        for part in self.parts:
            _add_test_case(suite, part)
        ET.indent(root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")

    def sarif(self) -> str:
        """Render SARIF 2.1.0 with one result per part that did not pass, at its line of the configuration."""
        rule_ids = list(_RULES)
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
            "results": [
                _sarif_result(part, rule_ids, self.config.path) for part in self.parts if part.status != "pass"
            ],
            "columnKind": "unicodeCodePoints",
        }
        return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _difference_text(check: CheckResult) -> str:
    limits = check.interval and [check.format_signed(end, 3) for end in check.interval]
    return check.format_signed(check.difference) + (f" [{limits[0]}, {limits[1]}]" if limits else "")


def _color_status(status: re.Match[str]) -> str:
    return f"\x1b[1;{_COLOR_CODES[status[0].lower()]}m{status[0]}\x1b[0m"
