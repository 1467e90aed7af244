"""`gate`: decisions about two runs, and input that it rejects."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from comparison_made import lists, scores
from judged import InputError, evaluate
from judged.comparison.slicing.topic_slices import Slice, slice_topics
from judged.diagnosis.gates import Check, GateConfig, Guardrail, gate
from judged.scoring.evaluation import Scores

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = 24
KINDS = {f"q{i:02}": {"kind": "odd" if i % 2 else "even"} for i in range(TOPICS)}
ODD = Slice("odd", "kind == 'odd'", owner="team odd")
RR = Check("RR", margin=0.05)


def ranks(odd: int = 1, even: int = 1) -> list[int | None]:
    return [odd if i % 2 else even for i in range(TOPICS)]


def run_gate(
    candidate: list[int | None], *checks: Check, baseline: list[int | None] | None = None, **options: Any
) -> Any:
    qrels, runs = lists(old=baseline or ranks(), new=candidate)
    attributes = options.pop("attributes", None)
    config = GateConfig(checks or (RR,), **{"resamples": 5000, **options})
    return gate(qrels, {"old": runs["old"]}, {"new": runs["new"]}, config, attributes=attributes)


def test_a_slice_can_fail_while_the_whole_is_undecided() -> None:
    result = run_gate(
        ranks(odd=2), Check("RR", margin=0.3), Check("RR", margin=0.05, slice="odd"), slices=(ODD,), attributes=KINDS
    )
    overall, odd = result.checks
    assert (overall.n, overall.difference, overall.status) == (24, -0.25, "inconclusive")  # 12 of 24 topics lose 0.5
    assert (odd.n, odd.baseline, odd.candidate, odd.difference, odd.p, odd.status) == (
        12,
        1.0,
        0.5,
        -0.5,
        2**-12,
        "fail",
    )
    assert (result.status, result.passed, result.exit_code) == ("fail", False, 1)
    assert result.sentences[0] == "FAIL: new against old: 1 of 2 checks failed."
    assert "RR in odd (owner: team odd): failed: the candidate lost 0.5 (1.0000 to 0.5000)" in result.sentences[2]
    assert "The largest losses are on q01 (1.0000 to 0.5000), q03" in result.sentences[2]


def test_statuses_and_exit_codes() -> None:
    unclear = ranks(odd=2), Check("RR", margin=0.26)
    assert [run_gate(*unclear).status, run_gate(*unclear).exit_code, run_gate(*unclear).passed] == [
        "inconclusive",
        0,
        True,
    ]
    assert [run_gate(*unclear, strict=True).status, run_gate(*unclear, strict=True).exit_code] == ["fail", 1]
    assert "which fails in strict mode" in run_gate(*unclear, strict=True).sentences[0]
    assert [run_gate(ranks()).status, run_gate(ranks()).exit_code] == ["pass", 0]
    assert run_gate(ranks()).sentences[0] == "PASS: new against old: the only check passed."


def test_the_inconclusive_sentence_says_what_is_open_and_what_would_have_been_seen() -> None:
    import numpy as np

    from judged.stats.sample_size import detectable

    differences = [0.0, -0.5] * 12
    (check,) = run_gate(ranks(odd=2), Check("RR", margin=0.26), test="t").checks
    noticed = 0.26 + detectable(np.array(differences), 0.1)
    assert check.detectable == pytest.approx(noticed)
    assert (
        f"a loss of up to {check.largest_loss:.4f} cannot be ruled out, and the margin is 0.26; the candidate is worse"
        f" (by at least {check.least_loss:.4f}), but possibly by less than the margin; with 24"
        f" topics, a loss of {noticed:.4f}"
        " is detected with 80% power, or with less power if the loss occurs on few topics." in check.sentence
    )


def test_scores_give_the_same_decision_as_runs(tmp_path: Path) -> None:
    candidate = ranks(odd=2)
    table = scores(["RR", "P@1"], old=ranks(), other=ranks(3, 3), new=candidate)
    table.save(tmp_path / "scores.parquet")
    config = GateConfig((RR, Check("P@1", margin=0.1, slice="odd")), slices=(ODD,), resamples=5000)
    slicing = slice_topics(KINDS, slices=[ODD])
    direct = run_gate(candidate, *config.checks, slices=(ODD,), attributes=KINDS)
    for table_or_file in (table, Scores.load(tmp_path / "scores.parquet")):
        assert table_or_file.gate("old", "new", config, slicing=slicing).checks == direct.checks
    with pytest.raises(InputError, match=r"the candidate 'nwe' is not a run of these scores. Fix: write new"):
        table.gate("old", "nwe", config, slicing=slicing)
    with pytest.raises(InputError, match=r"\[\[check\]\] 1: AP was not evaluated. Fix: use one of RR, P@1"):
        table.gate("old", "new", GateConfig((Check("AP", margin=0.1),)))


def test_names_are_read_as_the_dialect_means_them() -> None:
    result = run_gate(ranks(), Check("recip_rank", margin=0.1), Check("map", margin=0.1), dialect="trec_eval-10")
    assert [check.measure for check in result.checks] == ["RR", "AP"]
    assert [check.name for check in result.checks] == ["recip_rank", "map"]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            Check("NumRelRet", margin=1),
            r"NumRelRet is a sum over the topics.*use a measure that is averaged over topics",
        ),
        (Check("Judged@10", margin=0.1), r"Judged@10 has no better direction.*\[\[guardrail\]\]"),
        (Check("GMAP", margin=0.1), r"GMAP is a geometric mean, compared by ratios. Fix: set margin_relative"),
        (Check("RR", margin=0.1, slice="od"), r"\[\[check\]\] 1: no slice 'od'. Fix: write odd"),
    ],
)
def test_checks_that_cannot_be_made(check: Check, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_gate(ranks(), check, slices=(ODD,), attributes=KINDS)


def test_slices_need_attributes_of_these_topics() -> None:
    options = {"slices": (ODD,)}
    with pytest.raises(InputError, match=r"attribute kind is in no table.* Fix: pass the texts of the topics"):
        run_gate(ranks(), Check("RR", margin=0.1, slice="odd"), **options)
    with pytest.raises(InputError, match="the first topic is 'x1', and the first topic of the qrels is 'q00'"):
        run_gate(ranks(), Check("RR", margin=0.1, slice="odd"), **options, attributes={"x1": {"kind": "odd"}})
    with pytest.raises(InputError, match="attribute kind is in no table"):
        run_gate(ranks(), Check("RR", margin=0.1, slice="odd"), **options, attributes={"q01": {"sort": "odd"}})
    unused = run_gate(ranks(), slices=(ODD,), attributes=KINDS)
    assert "no check uses the slice 'odd'" in unused.warnings


def test_one_run_each_and_names_of_their_own() -> None:
    qrels, runs = lists(old=ranks(), new=ranks())
    with pytest.raises(InputError, match=r"`candidate` must be one run, got 2: old, new. Fix: select one run"):
        gate(qrels, runs["old"], runs, GateConfig((RR,)))
    plain = gate(qrels, runs["old"], runs["new"], GateConfig((RR,)))
    assert (plain.baseline, plain.candidate) == ("baseline", "candidate")
    same = gate(qrels, {"x": runs["old"]}, {"x": runs["new"]}, GateConfig((RR,)))
    assert same.baseline == "x"
    assert same.candidate != "x"


HALF_MISSING: list[int | None] = [None] * 12 + [1] * 12


def test_missing_topics_score_0_or_are_refused_or_guarded() -> None:
    assert run_gate(HALF_MISSING).checks[0].difference == -0.5
    assert (
        "the candidate has no results for 12 topics for which the baseline has results"
        in run_gate(HALF_MISSING).warnings
    )
    for topics in ("both", "run"):
        with pytest.raises(
            InputError, match=rf"no results for 12 topics .*q00.* topics = '{topics}' excludes these topics"
        ):
            run_gate(HALF_MISSING, topics=topics)
        result = run_gate(HALF_MISSING, topics=topics, guardrails=(Guardrail(missing_topics=12),))
        assert (result.status, result.checks[0].n, result.guardrails[0].candidate) == ("pass", 12, 12)
        assert run_gate(HALF_MISSING, topics=topics, guardrails=(Guardrail(missing_topics=11),)).status == "fail"
    other_way = run_gate(ranks(), baseline=HALF_MISSING, topics="both", guardrails=(Guardrail(missing_topics=0),))
    assert (other_way.guardrails[0].candidate, other_way.status) == (0, "pass")


def test_runs_over_different_topics_are_compared_over_those_of_both() -> None:
    first: list[int | None] = [None] * 4 + [1] * 20
    second: list[int | None] = [1] * 20 + [None] * 4
    result = run_gate(second, baseline=first, topics="run", guardrails=(Guardrail(missing_topics=4),))
    (check,) = result.checks
    assert (check.n, check.left_out) == (16, 8)
    assert "Excluded: 8 topics on which at least one of the two runs has no score" in check.sentence


def judged_share(at_least: float | None = None, below: float | None = None) -> Any:
    """The top 10 contain one judged document, or none on every other topic of the candidate."""
    guardrail = Guardrail("Judged@10", at_least=at_least, at_most_below_baseline=below)
    (result,) = run_gate(ranks(odd=11), Check("RR", margin=1.0), guardrails=(guardrail,)).guardrails
    return result


def test_the_judged_share_is_held_against_its_limits() -> None:
    assert (judged_share(0.05).baseline, judged_share(0.05).candidate) == (pytest.approx(0.1), pytest.approx(0.05))
    assert [judged_share(0.05).status, judged_share(0.051).status] == ["pass", "fail"]
    assert [judged_share(below=0.05).status, judged_share(below=0.049).status] == ["pass", "fail"]
    assert judged_share(0.05, 0.049).status == "fail"
    assert judged_share(0.06).sentence == (
        "Judged@10 (judged share): failed: the candidate has 0.05 (baseline 0.1); allowed: at least 0.06."
    )
    with pytest.raises(InputError, match=r"\[\[guardrail\]\] 1: RR is an estimate over topics"):
        run_gate(ranks(), guardrails=(Guardrail("RR", at_least=0.5),))


def table_guardrail(path: Path, **limits: Any) -> Any:
    guardrail = Guardrail(table=str(path), column="ms", **limits)
    (result,) = run_gate(ranks(), guardrails=(guardrail,)).guardrails
    return result


def test_numbers_from_a_table_by_run(tmp_path: Path) -> None:
    rows = [{"run": "old", "ms": 100.0}, {"run": "new", "ms": 110.0}, {"run": "else", "ms": 1.0}]
    texts = {
        "t.csv": "run,ms\nold,100\nnew,110\nelse,1\n",
        "t.tsv": "run\tms\nold\t100\nnew\t110\n",
        "t.json": json.dumps(rows),
        "t.jsonl": "\n".join(map(json.dumps, rows)),
        "roles.csv": "\ufeffrun,ms\nbaseline,100\n\ncandidate, 110\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        path = tmp_path / name
        result = table_guardrail(path, at_most=110)
        assert (result.baseline, result.candidate, result.status) == (100.0, 110.0, "pass")
        assert table_guardrail(path, at_most=109).status == "fail"
        assert [table_guardrail(path, at_most_ratio=ratio).status for ratio in (1.1, 1.09)] == ["pass", "fail"]
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert table_guardrail(tmp_path / "t.parquet", at_most=109).status == "fail"


def test_a_quantile_of_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("run,ms\n" + "".join(f"new,{i}\nold,{i / 2}\n" for i in range(1, 101)))
    assert table_guardrail(path, at_most=1, quantile=0.95).candidate == 95  # 95 of 100 are at most 95
    assert table_guardrail(path, at_most=1, quantile=0.951).candidate == 96
    assert table_guardrail(path, at_most=1, quantile=1.0).candidate == 100
    assert table_guardrail(path, at_most=1, quantile=0.0).candidate == 1
    assert table_guardrail(path, at_most_ratio=2.0, quantile=0.5).status == "pass"
    with pytest.raises(InputError, match=r"column ms has 100 rows for 'old'. Fix: set quantile = 0.95"):
        table_guardrail(path, at_most=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,latency\nnew,1\n", r"no column 'ms'. Fix: use latency"),
        ("system_,ms\nnew,1\n", r"no column 'run' among system_, ms"),
        ("run,ms\nold,1\n", r"no number for the candidate 'new'.*the table has old"),
        ("run,ms\nnew,fast\n", r"t.csv:2: ms: 'fast' is not a number"),
        ("run,ms\nnew,nan\n", r"t.csv:2: ms: 'nan' is not a number"),
        ("run,ms\nnew,\n", r"no number for the candidate 'new'.*the table has no numbers"),
        ("", r"there are no rows"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        table_guardrail(tmp_path / "t.csv", at_most=1)


def test_a_table_that_is_not_there_and_a_baseline_that_is_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        table_guardrail(tmp_path / "t.csv", at_most=1)
    (tmp_path / "t.csv").write_text("run,ms\nnew,1\n")
    assert math.isnan(table_guardrail(tmp_path / "t.csv", at_most=1).baseline)
    with pytest.raises(InputError, match=r"no number for the baseline 'old'"):
        table_guardrail(tmp_path / "t.csv", at_most_ratio=1.1)
    (tmp_path / "t.json").write_text('{"new": 3}')
    with pytest.raises(InputError, match="contains no list of records"):
        table_guardrail(tmp_path / "t.json", at_most=1)


def test_guardrails_alone_are_a_gate() -> None:
    qrels, runs = lists(old=ranks(), new=HALF_MISSING)
    result = gate(qrels, runs["old"], runs["new"], {"guardrail": [{"missing_topics": 0}]})
    assert (result.status, result.checks, len(result.table())) == ("fail", (), 0)
    assert result.sentences[0] == "FAIL: candidate against baseline: 1 of 1 guardrail failed."


def test_nothing_given_is_changed() -> None:
    table = scores("RR", old=ranks(), new=ranks(odd=2))
    before = table.values.copy()
    table.gate("old", "new", GateConfig((RR,)))
    assert (table.values == before).all()


def test_a_check_that_measures_nothing_does_not_pass() -> None:
    nothing: list[int | None] = [0] * TOPICS
    low = ranks(15, 15)  # below the cutoff of 10
    for candidate in (low, ranks(), nothing):
        with pytest.raises(InputError, match=r"\[\[check\]\] 1: RR@10 of the baseline old is 0 or undefined on every"):
            run_gate(candidate, Check("RR@10", margin=0.1), baseline=low)
    with pytest.raises(InputError, match=r"\[\[check\]\] 2: AP\(rel=5\) of the baseline old is 0 .* has a grade that"):
        run_gate(ranks(), RR, Check("AP(rel=5)", margin=0.1))
    with pytest.raises(InputError, match=r"RR@10 in odd of the baseline old is 0"):  # and nothing else is asked
        run_gate(ranks(), Check("RR@10", margin=0.1, slice="odd"), baseline=low, slices=(ODD,), attributes=KINDS)
    assert run_gate(nothing).status == "fail"  # of one run, it is a loss
    qrels, only = {topic: {"rel": 1} for topic in KINDS}, {topic: ["rel"] for topic in KINDS}
    perfect = gate(qrels, only, only, GateConfig((Check("Fallout(n=100)", margin=0.1),)))
    assert (perfect.status, perfect.checks[0].baseline) == ("pass", 0.0)  # where lower is better, 0 is the best


@pytest.mark.parametrize("ids", ["baseline", "both"])
@pytest.mark.parametrize(
    "part", [Check("RR", margin=0.1), Check("Fallout(n=100)", margin=0.1), Guardrail(missing_topics=0)]
)
def test_a_baseline_of_another_collection_is_wrong_input_and_never_passes(ids: str, part: Check | Guardrail) -> None:
    """Its document ids match no judgment. It scores 0 everywhere, so that no candidate could lose."""
    qrels, runs = lists(old=ranks(), new=ranks())
    other = {topic: [f"other-{doc}" for doc in docs] for topic, docs in runs["old"].items()}
    config = GateConfig(**{"checks" if isinstance(part, Check) else "guardrails": (part,)})
    with pytest.raises(InputError, match=r"no document of the baseline other is judged, .* use the same ids"):
        gate(qrels, {"other": other}, {"new": other if ids == "both" else runs["new"]}, config)


def test_a_candidate_of_another_collection_does_not_pass_where_0_is_the_best_score() -> None:
    qrels, runs = lists(old=ranks(), new=ranks())
    other = {topic: [f"other-{doc}" for doc in docs] for topic, docs in runs["old"].items()}
    with pytest.raises(InputError, match=r"\[\[check\]\] 1: no document of the candidate other is judged"):
        gate(qrels, {"old": runs["old"]}, {"other": other}, GateConfig((Check("Fallout(n=100)", margin=0.1),)))
    failed = gate(qrels, {"old": runs["old"]}, {"other": other}, GateConfig((RR,)))
    assert (failed.exit_code, failed.warnings[0][:15]) == (1, "other: no score")


def test_a_measure_that_no_topic_has_for_both_runs_is_wrong_input() -> None:
    qrels, runs = lists(old=ranks(), new=ranks())
    table = evaluate(qrels, runs, "RR")
    values = table.values.copy()
    values[1] = math.nan
    with pytest.raises(InputError, match=r"no topic has a score in RR for both runs"):
        replace(table, values=values).gate("old", "new", GateConfig((RR,)))


@pytest.mark.parametrize("candidate", [2, 0])
def test_a_slice_where_the_baseline_finds_nothing_is_undecided(candidate: int) -> None:
    hard: list[int | None] = [0 if i % 2 else 1 for i in range(TOPICS)]
    worse: list[int | None] = [candidate if i % 2 else 2 for i in range(TOPICS)]
    checks = RR, Check("RR", margin=0.1, slice="odd")
    result = run_gate(worse, *checks, baseline=hard, slices=(ODD,), attributes=KINDS)
    assert [check.status for check in result.checks] == ["fail" if candidate == 0 else "inconclusive", "inconclusive"]
    assert "inconclusive: the baseline scores 0 on each of 12 topics, so no loss" in result.checks[1].sentence
    assert result.checks[1].family == 1
    same = run_gate(hard, *checks, baseline=hard, slices=(ODD,), attributes=KINDS)
    assert [check.status for check in same.checks] == ["pass", "pass"]  # identical runs that are measured elsewhere


OUTCOMES = {"first_relevant": "2-3"}


def test_slices_by_an_outcome_are_refused() -> None:
    """On the topics where the baseline scores best, any other run scores lower, even if it is as good."""
    top = Slice("top", "first_relevant == '2-3'")
    check = Check("RR", margin=0.05, slice="top")
    with pytest.raises(
        InputError, match=r"\[\[slice\]\] 1: the slice 'top' must not depend on first_relevant.*regression to"
    ):
        run_gate(ranks(odd=2), check, slices=(top,))
    table, slicing = scores("RR", old=ranks(), new=ranks()), slice_topics(dict.fromkeys(KINDS, OUTCOMES), slices=[top])
    with pytest.raises(InputError, match=r"\[\[check\]\] 1: the slice 'top' must not depend on first_relevant"):
        table.gate("old", "new", GateConfig((check,)), slicing=slicing)


def test_a_slice_without_topics_is_no_slice() -> None:
    none = Slice("none", "kind == 'neither'")
    with pytest.raises(InputError, match=r"no topic is in the slice 'none': none satisfies kind == 'neither'"):
        run_gate(ranks(), Check("RR", margin=0.1, slice="none"), slices=(none,), attributes=KINDS)
    elsewhere = slice_topics({"x1": {"kind": "odd"}}, slices=[ODD])
    config = GateConfig((Check("RR", margin=0.1, slice="odd"),))
    with pytest.raises(InputError, match=r"the first topic is 'q00', and the first topic of the attributes is 'x1'"):
        scores("RR", old=ranks(), new=ranks()).gate("old", "new", config, slicing=elsewhere)


def test_limits_by_the_baseline_are_shown_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("run,ms\nold,100\nnew,120\n")
    result = table_guardrail(tmp_path / "t.csv", at_most_ratio=1.1)
    assert result.limits == ("at most 110 (1.1 times the baseline)",)
    assert result.sentence == (
        "ms: failed: the candidate has 120, 1.2 times the baseline's 100; allowed: at most 110 (1.1 times the"
        " baseline)."
    )
    assert judged_share(below=0.04).limits == ("at least 0.06 (0.04 below the baseline)",)
