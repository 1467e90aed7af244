"""`judged gate` and `judged gate init`: what they print, write and end with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import judged
from comparison_made import lists
from judged.data.write import write_qrels, write_run
from judged.diagnosis.gates import gate, parse_config, read_config
from judged.diagnosis.gates.first_config import first_config, round_up

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

TOPICS = 40
OLD = [(1, 1, 2, 3, 5)[at * 7 % 13 % 5] for at in range(TOPICS)]
RANKS = {
    "old": OLD,
    "same": OLD,
    "worse": [rank + 2 for rank in OLD],
    "mixed": [max(1, rank + (1, -1)[at % 2]) for at, rank in enumerate(OLD)],
}
CONFIG = '[gate]\nresamples = 5000\n[[check]]\nmeasure = "RR"\nmargin = 0.02\n'
FILES = "qrels.txt", "old.run"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    qrels, runs = lists(**RANKS)
    write_qrels(judged.Qrels.of(qrels), tmp_path / "qrels.txt")
    for name, run in runs.items():
        scored = {topic: {doc: -at for at, doc in enumerate(docs)} for topic, docs in run.items()}
        write_run(judged.Run.of(scored), tmp_path / f"{name}.run")
    (tmp_path / "gate.toml").write_text(CONFIG)
    kinds = (f"q{at:02},{'few' if at < 4 else 'a' if at % 2 else 'b'},{at}" for at in range(TOPICS))
    (tmp_path / "topics.csv").write_text("\n".join(["query_id,kind,order", *kinds, ""]))
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("candidate", "more", "code", "status"),
    [
        ("same", (), 0, "PASS"),
        ("same", ("--strict",), 0, "PASS"),
        ("worse", (), 1, "FAIL"),
        ("mixed", (), 0, "INCONCLUSIVE"),
        ("mixed", ("--strict",), 1, "FAIL"),
    ],
)
def test_exit_codes(run: Callable[..., Ended], candidate: str, more: tuple[str, ...], code: int, status: str) -> None:
    done = run("gate", *FILES, f"{candidate}.run", *more)
    assert (done.code, done.lines[0].partition(":")[0]) == (code, status)
    assert ("does not block the release, unless --strict" in " ".join(done.out.split())) == (status == "INCONCLUSIVE")


@pytest.mark.usefixtures("folder")
def test_the_configuration_is_named_and_its_error_rates_are_printed(run: Callable[..., Ended]) -> None:
    done = run("gate", "init", *FILES, "-m", "RR", "-o", "first.toml")
    assert "First check: With 40 topics, a candidate that loses" in done.out
    shares = re.findall(r"(?:passes|fails|inconclusive) with probability (\d+)%", done.out)
    assert (len(shares), sum(map(int, shares[1:]))) == (4, 100)  # the first share is that of a worse candidate
    assert "Configuration: gate.toml." in run("gate", *FILES, "mixed.run").lines
    assert "Configuration:" not in run("gate", *FILES, "mixed.run", "-m", "RR", "--margin", "0.02").out


@pytest.mark.usefixtures("folder")
def test_the_command_prints_what_the_function_finds(run: Callable[..., Ended]) -> None:
    result = gate("qrels.txt", "old.run", "worse.run", "gate.toml")
    assert run("gate", *FILES, "worse.run").out == result.text() + "\n"
    for form in ("markdown", "json", "junit", "sarif"):
        done = run("gate", *FILES, "worse.run", "--format", form)
        assert (done.out, done.err, done.code) == (getattr(result, form)() + "\n", "", 1)


def test_several_forms_at_once(folder: Path, run: Callable[..., Ended]) -> None:
    names = {"--junit": "j.xml", "--sarif": "s.sarif", "--markdown": "m.md", "--json": "r.json", "-o": "t.txt"}
    done = run("gate", *FILES, "worse.run", *(part for pair in names.items() for part in pair))
    result = gate("qrels.txt", "old.run", "worse.run", "gate.toml")
    assert (done.code, done.out) == (1, "FAIL: worse against old: 1 of 1 check failed.\n")  # for the log of a job
    written = {name: (folder / name).read_text() for name in names.values()}
    assert ET.fromstring(written["j.xml"].encode()).find("testsuite/testcase/failure") is not None  # noqa: S314
    place = json.loads(written["s.sarif"])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "gate.toml"}, "region": {"startLine": 3}}
    assert json.loads(written["r.json"]) == result.to_dict()
    assert (written["m.md"], written["t.txt"]) == (result.markdown() + "\n", result.text() + "\n")
    assert run("gate", *FILES, "worse.run", "-o", "x.sarif").code == 1
    assert (folder / "x.sarif").read_text() == written["s.sarif"]


def test_the_configuration_knows_where_its_files_are(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "ci").mkdir()
    text = f'attributes = "../topics.csv"\n{CONFIG}slice = "a"\n[[slice]]\nname = "a"\nexpression = "kind == \'a\'"\n'
    text += '[[guardrail]]\ntable = "ms.csv"\ncolumn = "ms"\nat_most = 5\n'
    (folder / "ci" / "gate.toml").write_text(text)
    (folder / "ci" / "ms.csv").write_text("run,ms\nold,4\nworse,6\n")
    done = run("gate", *FILES, "worse.run", "--config", "ci/gate.toml", "--format", "json")
    read = json.loads(done.out)
    assert [(one["slice"], one["n"], one["status"]) for one in read["checks"]] == [("a", 18, "fail")]
    assert [(one["baseline"], one["candidate"], one["status"]) for one in read["guardrails"]] == [(4, 6, "fail")]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("same.run", "--config", "none.toml"), "none.toml: it cannot be read"),
        (("none.run",), "none.run"),
        (("same.run", "-o", "x.pdx"), "the format of a result is unknown for .pdx"),
        (("same.run", "--json", "gate.toml"), "the output file is also an input"),
        (("same.run", "--json", "x", "--junit", "x"), "two outputs have the same file"),
        ((), "Missing argument 'CANDIDATE'"),
    ],
)
def test_wrong_input_ends_with_2(run: Callable[..., Ended], arguments: tuple[str, ...], message: str) -> None:
    done = run("gate", *FILES, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Fix: " in done.err


def test_a_mistake_in_the_configuration_names_its_line(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "gate.toml").write_text(CONFIG + "margn = 3\n")
    done = run("gate", *FILES, "same.run")
    assert (done.code, done.err) == (2, "error: gate.toml:6: [[check]] 1: unknown key: 'margn'. Fix: write margin.\n")


@pytest.mark.usefixtures("folder")
def test_help_shows_both_commands(run: Callable[..., Ended]) -> None:
    assert "judged gate [OPTIONS] QRELS BASELINE CANDIDATE" in run("gate", "--help").out
    assert "judged gate init" in run("gate", "--help").out
    assert "judged gate init [OPTIONS] QRELS BASELINE [RUN]..." in run("gate", "init", "--help").out


@pytest.mark.parametrize("more", [(), ("--strict",), ("--margin-relative", "0.05"), ("mixed.run",)])
def test_a_first_configuration_is_accepted_as_it_is(
    folder: Path, run: Callable[..., Ended], more: tuple[str, ...]
) -> None:
    done = run("gate", "init", *FILES, *more, "-o", "new.toml")
    assert (done.code, done.err) == (0, "")
    config = read_config(folder / "new.toml")
    assert [one.measure for one in config.checks] == ["RR@10", "R@20"]  # one relevant document, twenty returned
    assert config.strict == ("--strict" in more)
    assert [one.kind for one in config.guardrails] == ["judged", "missing topics"]
    assert run("gate", *FILES, "same.run", "--config", "new.toml").code == 0
    assert run("gate", *FILES, "worse.run", "--config", "new.toml").code == 1


def test_init_slices_by_what_is_known_and_large_enough(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "ci").mkdir()
    done = run("gate", "init", *FILES, "--attributes", "topics.csv", "--by", "kind", "-m", "RR", "-o", "ci/g.toml")
    assert done.code == 0
    text = (folder / "ci" / "g.toml").read_text()
    config = parse_config(text)
    assert config.attributes == "../topics.csv"
    assert [one.name for one in config.slices] == ["kind=a", "kind=b"]
    assert [(one.measure, one.slice) for one in config.checks] == [("RR", "all"), ("RR", "kind=a"), ("RR", "kind=b")]
    assert "# Slices with too few topics for a decision: kind=few (4)." in text
    read = json.loads(run("gate", *FILES, "mixed.run", "--config", "ci/g.toml", "--format", "json").out)
    assert [one["n"] for one in read["checks"]] == [40, 18, 18]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "gate.toml: the output file exists already. Fix: use another name, or --force"),
        (("--by", "kind", "-o", "n.toml"), "the attribute kind is in no table"),
        (("--attributes", "topics.csv", "-o", "n.toml"), "Fix: use --by with one of kind, order"),
        (("--by", "first_relevant", "-o", "n.toml"), "the slices of a gate must not depend on first_relevant"),
        (("-m", "AP(rel=5)", "-o", "n.toml"), "AP(rel=5) of the baseline old is 0 on every topic, so no loss"),
        (("-m", "NumRelRet", "-o", "n.toml"), "NumRelRet cannot be checked by a gate"),
        (("-o", "qrels.txt", "--force"), "the output file is also an input"),
    ],
)  # fmt: skip
def test_init_refuses(run: Callable[..., Ended], arguments: tuple[str, ...], message: str) -> None:
    done = run("gate", "init", *FILES, *arguments)
    assert done.code == 2
    assert message in done.err


def test_init_overwrites_when_it_is_forced(folder: Path, run: Callable[..., Ended]) -> None:
    assert run("gate", "init", *FILES, "--force").code == 0
    assert (folder / "gate.toml").read_text() != CONFIG
    printed = run("gate", "init", *FILES, "-o", "-")
    assert printed.out.rstrip("\n") == (folder / "gate.toml").read_text().rstrip("\n")


def test_margins_follow_from_the_spread_of_the_differences() -> None:
    import numpy as np

    from judged.stats import minimum_detectable

    qrels, runs = lists(**RANKS)
    values = judged.evaluate(qrels, runs, "RR").values[:, 0]
    gaps = values[3] - values[0]
    told = minimum_detectable(float(np.std(gaps, ddof=1)), TOPICS, 0.1)
    text = first_config(qrels, {"old": runs["old"]}, {"mixed": runs["mixed"]}, "RR", strict=True)
    (check,) = parse_config(text).checks
    assert check.margin == round_up(told)
    assert told <= check.margin <= 1.34 * told
    assumed = float(np.std(values[0], ddof=1)) * 0.2**0.5  # correlation 0.9
    (check,) = parse_config(first_config(qrels, {"old": runs["old"]}, None, "RR", strict=True)).checks
    assert check.margin == round_up(minimum_detectable(assumed, TOPICS, 0.1))


def test_attributes_must_be_a_file() -> None:
    qrels, runs = lists(old=[1, 2] * 12)
    kinds = {topic: {"kind": "ab"[at % 2]} for at, topic in enumerate(qrels)}
    with pytest.raises(judged.InputError, match="attributes must be a path, got dict"):
        first_config(qrels, runs["old"], attributes=kinds)


def test_a_baseline_from_which_nothing_can_be_told() -> None:
    qrels, runs = lists(old=[1] * 12)
    config = parse_config(first_config(qrels, runs["old"], None, ["RR", "GMAP"]))
    assert [one.margin_relative for one in config.checks] == [0.02, 0.02]


def test_init_takes_several_attributes_at_once(folder: Path, run: Callable[..., Ended]) -> None:
    done = run("gate", "init", *FILES, "--attributes", "topics.csv", "--by", "kind,order", "-m", "RR", "-o", "n.toml")
    assert (done.code, done.err) == (0, "")
    names = [one.name for one in read_config(folder / "n.toml").slices]
    assert names == ["kind=a", "kind=b", "order<13", "order 13 to 25", "order>=26"]


def test_init_warns_of_a_baseline_that_is_hardly_judged(folder: Path, run: Callable[..., Ended]) -> None:
    """Two of 40 topics have results; a guardrail of at least 0 judged documents would guard nothing."""
    qrels, runs = lists(few=[1, 2] + [None] * 38)  # type: ignore[list-item]
    scored = {topic: {doc: -at for at, doc in enumerate(docs)} for topic, docs in runs["few"].items()}
    write_run(judged.Run.of(scored), folder / "few.run")
    done = run("gate", "init", "qrels.txt", "few.run", "-m", "RR", "-o", "n.toml")
    assert done.code == 0
    assert "warning: few: no documents returned for 38 of 40 topics" in done.err
    assert "warning: few: 0.5% of the top 10 documents are judged: judgments are sparse, or document" in done.err
    assert [one.kind for one in read_config(folder / "n.toml").guardrails] == ["missing topics"]
    assert "too few documents are judged" in (folder / "n.toml").read_text().replace("\n# ", " ")
    with pytest.warns(judged.JudgedWarning) as told:
        first_config(qrels, runs["few"], None, "RR")
    assert len(told) == 2


@pytest.mark.usefixtures("folder")
def test_other_document_ids_do_not_pass(folder: Path, run: Callable[..., Ended]) -> None:
    text = (folder / "old.run").read_text().replace("rel", "lost")
    (folder / "foreign.run").write_text(text)
    for candidate in ("foreign.run", "old.run"):
        done = run("gate", "qrels.txt", "foreign.run", candidate)
        assert (done.code, done.out) == (2, "")
        assert "foreign.run: no document of the baseline foreign" in done.err
    assert run("gate", "init", "qrels.txt", "foreign.run", "-m", "RR", "-o", "n.toml").code == 2


OF_SLICE = 'slice = "s"\n[[slice]]\nname = "s"\nexpression = '
TABLE = '[[guardrail]]\ntable = "{}"\ncolumn = "ms"\nat_most = 5\n'
MISTAKES = {
    f'attributes = "nope.csv"\n{CONFIG}': "gate.toml:1: attributes: there is no file nope.csv",
    f'[gate]\nqueries = "nope.tsv"\n{CONFIG[7:]}': "gate.toml:2: queries: there is no file nope.tsv",
    f'{CONFIG}slice = "foo"\n': "gate.toml:3: [[check]] 1: no slice 'foo'. Fix: add a [[slice]] with this name",
    f'attributes = "topics.csv"\n{CONFIG}{OF_SLICE}"kind == 3"\n': "gate.toml:8: [[slice]] 1: the attribute kind",
    f'attributes = "topics.csv"\n{CONFIG}{OF_SLICE}"kind == \'none\'"\n': (
        "gate.toml:4: [[check]] 1: no topic is in the slice 's': none satisfies kind == 'none'"
    ),
    f"{CONFIG}{OF_SLICE}\"first_relevant == '1'\"\n": (
        "gate.toml:7: [[slice]] 1: the slice 's' must not depend on first_relevant, which is computed from the"
        " results of a run"
    ),
    CONFIG + TABLE.format("none.csv"): "gate.toml:6: [[guardrail]] 1: none.csv: there is no such file",
    CONFIG
    + TABLE.format("topics.csv"): "gate.toml:6: [[guardrail]] 1: topics.csv: no column 'run' among query_id, kind",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_of_files_and_slices_name_their_line(folder: Path, run: Callable[..., Ended], text: str) -> None:
    (folder / "gate.toml").write_text(text)
    done = run("gate", *FILES, "same.run")
    assert (done.code, done.out) == (2, "")
    assert MISTAKES[text] in done.err


def test_a_margin_that_no_candidate_can_lose_is_told(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "gate.toml").write_text(CONFIG.replace("0.02", "50"))
    done = run("gate", *FILES, "worse.run")
    assert done.code == 0
    assert "warning: RR: the margin of 50 is not smaller than the baseline's mean 0.6" in done.err
    assert "no less than" not in run("gate", *FILES, "same.run", "--config", _written(folder, "0.5")).err


def _written(folder: Path, margin: str) -> str:
    (folder / "other.toml").write_text(CONFIG.replace("0.02", margin))
    return "other.toml"


@pytest.mark.parametrize("candidate", ["same", "worse", "mixed"])
def test_a_margin_for_a_measure_is_that_of_a_configuration(
    folder: Path, run: Callable[..., Ended], candidate: str
) -> None:
    checks = [f'[[check]]\nmeasure = "{measure}"\nmargin = 0.02\n' for measure in ("RR", "P@1")]
    (folder / "gate.toml").write_text("".join(checks))
    files = (*FILES, f"{candidate}.run")
    alone = run("gate", *files, "-m", "MRR,P@1", "--margin", "0.02", "--format", "json")
    with_file = run("gate", *files, "--format", "json")
    said, other = (json.loads(done.out) for done in (alone, with_file))
    lines = [[check.pop("line") for check in found["checks"]] for found in (said, other)]
    assert lines == [[None, None], [1, 4]]
    assert (alone.code, said["checks"], said["sentences"]) == (with_file.code, other["checks"], other["sentences"])
    strict = run("gate", *files, "-m", "RR", "--margin-relative", "0.05", "--strict")
    found = gate(*files, {"gate": {"strict": True}, "check": [{"measure": "RR", "margin_relative": 0.05}]})
    assert strict.code == found.exit_code
    scores = judged.evaluate("qrels.txt", ["old.run", f"{candidate}.run"], ["RR", "P@1"])
    assert scores.gate("old", candidate, measures=["RR", "P@1"], margin=0.02).exit_code == alone.code


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", "RR"), "no margin is set"),
        (
            ("--margin", "0.02", "--config", "gate.toml"),
            "remove the configuration, or remove the measure and the margin",
        ),
        (("--margin", "-1"), "margin is -1.0"),
        (("--margin", "0.1", "--margin-relative", "0.1"), "margin and margin_relative are both set"),
        (("-m", "NDCG10", "--margin", "0.1"), "did you mean nDCG@10"),
    ],
)
def test_a_margin_that_makes_no_sense(run: Callable[..., Ended], arguments: tuple[str, ...], message: str) -> None:
    done = run("gate", *FILES, "worse.run", *arguments)
    assert (done.code, message in done.err) == (2, True), done.err


def test_equal_run_files_are_reported(folder: Path, run: Callable[..., Ended]) -> None:
    content = (folder / "old.run").read_bytes()
    (folder / "copy.run").write_bytes(content)
    (folder / "different.run").write_bytes(content + b"q99 Q0 z 1 1 tag\n")
    results = {name: run("gate", *FILES, f"{name}.run") for name in ("copy", "different")}
    texts = {name: " ".join((done.out + done.err).split()) for name, done in results.items()}
    assert {name: "have the same content" in text for name, text in texts.items()} == {"copy": True, "different": False}
