"""`advise` on collections: the inferred task, the relevance level, the measures, and the command."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged.cli.main import main
from judged.data import sample
from judged.interface.commands.scoring import advise_command
from judged.scoring.advice import RULES, Advice, build_profile
from judged.scoring.advice.rules import TASKS
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from collections.abc import Callable


def rows(*lines: str) -> list[dict[str, Any]]:
    """Create qrels from lines with topic, iteration, document, and grade."""
    names = ("query_id", "iteration", "doc_id", "relevance")
    return [dict(zip(names, line.split(), strict=True)) | {"relevance": float(line.split()[3])} for line in lines]


def names(advice: Advice) -> list[str]:
    return [str(measure) for measure in advice.measures]


def rules(advice: Advice) -> set[str]:
    return {recommendation.rule for recommendation in advice.recommendations}


@pytest.mark.parametrize(
    ("qrels", "runs", "task"),
    [
        ({"q": {"a": 1}}, (), "single-answer"),
        ({"q": {"a": 1, "b": 1}}, (), "many-relevant"),
        ({"q": {"a": 1, "b": 2}}, (), "graded"),
        ({"q": {"a": 0}}, (), "many-relevant"),
        (rows("q 1 a 1", "q 2 a 0"), (), "diversity"),
        (rows("q ann a 1", "q bob a 0"), (), "assessors"),
        (rows("q 1 a 1", "q 2 b 1"), (), "many-relevant"),  # rounds: no pair has two
        (rows("q u1_x a 1", "q 2 a 0"), (), "assessors"),
        ({"q": {"a": 1}}, [[{"query_id": "q", "doc_id": "a"}]], "set"),
    ],
)
def test_the_task_is_taken_from_the_data(qrels: Any, runs: Any, task: str):
    runs = [judged.Run.of(run, name="r") for run in runs]
    advice = judged.advise(qrels, runs)
    assert (advice.task.name, advice.has_explicit_task) == (task, False)
    assert task not in {other.name for other in advice.other_tasks}
    assert {"rag", "coverage", "first-stage", "recommendation"} <= {other.name for other in advice.other_tasks}
    text = " ".join(str(advice).split())
    assert "No task was selected" in text
    assert f"(--task): {', '.join(other.name for other in advice.other_tasks)}." in text


def test_preferences_are_told_by_their_format(tmp_path: Path):
    path = tmp_path / "prefs.txt"
    path.write_text("q u1 0 a 2\nq u1 0 b 1\nq u2 0 a 1\nq u2 0 b 2\n")
    advice = judged.advise(judged.Qrels.read(path, format="prefs"))
    assert (advice.task.name, names(advice)) == ("preferences", ["Compat", "PrefShare"])


def test_one_answer_is_four_topics_of_five():
    one_relevant, two_relevant = {"a": 1}, {"a": 1, "b": 1}
    qrels = {
        "1": one_relevant,
        "2": one_relevant,
        "3": one_relevant,
        "4": one_relevant,
        "5": two_relevant,
        "6": {"a": 0},
    }  # the last topic has no relevant document
    assert judged.advise(qrels).task.name == "single-answer"
    assert judged.advise(qrels | {"7": two_relevant}).task.name == "many-relevant"


@pytest.mark.parametrize(
    ("grades", "level"),
    [
        ([1, 0], 1),
        ([2, 1, 0], 1),
        ([3, 2, 1, 0], 2),
        ([4, 3, 2, 1], 1),
        ([100, 10, 1], 1),
        ([0.75, 0.25], 0.25),
        ([2.5, 0.5], 1),
        ([0, -2], 1),
    ],
)
def test_the_level_goes_by_the_scale(grades: list[float], level: float):
    profile = build_profile({"q": {f"d{position}": grade for position, grade in enumerate(grades)}})
    assert (profile.rel, profile.has_explicit_rel) == (level, False)


def test_the_higher_level_gives_way_where_it_empties_topics():
    full, weak = {"a": 3, "b": 2, "c": 1}, {"a": 1}
    assert build_profile({**{f"f{i}": full for i in range(9)}, "w": weak}).rel == 2  # one in ten
    assert build_profile({**{f"f{i}": full for i in range(8)}, "w": weak}).rel == 1


def test_a_level_that_is_given_is_taken():
    qrels = {"q": {"a": 3, "b": 2, "c": 1}}
    advice = judged.advise(qrels, rel=3)
    assert (advice.profile.rel, advice.profile.has_explicit_rel) == (3, True)
    assert names(advice) == ["nDCG@10", "R(rel=3)@100"]
    assert "count grade 3 and above" in advice.text(unfold=["notes"])
    with pytest.raises(judged.InputError, match=r"`rel` must be a finite grade above 0, got 0\. Fix: use --rel 1"):
        judged.advise(qrels, rel=0)


def test_profile_by_hand():
    qrels = {"q1": {"a": 2, "b": 1, "c": 0, "d": -1}, "q2": {"a": 1}, "q3": {"a": 0}}
    ties = {"q1": {"a": 1.0, "x": 1.0, "b": 0.5, "y": 0.1}, "q2": {"a": 1.0}, "other": {"z": 1.0}}
    profile = build_profile(qrels, [judged.Run.of(ties, name="r")])
    assert (profile.n, profile.judgments, profile.grades, profile.positive) == (3, 6, (-1, 0, 1, 2), (1, 2))
    assert (profile.relevant.least, profile.relevant.median, profile.relevant.most) == (0, 1, 2)
    assert (profile.judged.least, profile.judged.median, profile.judged.most) == (1, 1, 4)
    assert (profile.without_relevant, profile.one_relevant, profile.with_relevant, profile.under_10) == (1, 1, 2, 2)
    assert profile.best_p10 == pytest.approx((0.2 + 0.1 + 0) / 3)
    assert (profile.best_r10, profile.over_10, profile.over_100) == (pytest.approx(2 / 3), 0, 0)
    assert (profile.not_relevant, profile.without_nonrelevant, profile.negative) == (2, 1, 1)
    assert (profile.lowest_grade_share, profile.without_highest_grade, profile.below_rel) == (
        pytest.approx(2 / 3),
        1,
        0,
    )
    run = profile.runs[0]
    assert (run.ranked, run.missing, run.returned.least, run.returned.most) == (True, 1, 1, 4)
    assert run.judged_10 == run.judged_100 == pytest.approx((2 / 4 + 1 + 0) / 3)
    assert run.judged_depth == 0  # 75% of the first 5
    assert run.tied_10 == pytest.approx(1 / 3)  # a of q1, of the three judged ones


def test_cutoffs_end_with_the_lists():
    qrels = {"q": {"a": 1, "b": 1, "c": 0}}
    short = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    assert names(judged.advise(qrels, short, "rag")) == ["Success@3", "R@3", "nDCG@3", "Judged@3"]
    long = {"q": {f"x{i}": float(i) for i in range(500)} | {"a": 1000.0}}
    assert "R@1000" in names(judged.advise(qrels, long, "rag"))


def test_the_command_names_files_and_runs_as_they_were_given(tmp_path: Path):
    (tmp_path / "my qrels.txt").write_text("q 0 a 3\nq 0 b 2\nq 0 c 1\n")
    (tmp_path / "a.run").write_text("q Q0 a 1 1.0 t\n")
    qrels = judged.Qrels.read(tmp_path / "my qrels.txt")
    runs = {"mine": tmp_path / "a.run"}
    words = shlex.split(judged.advise(qrels, runs, "first-stage").command)
    assert words[:4] == ["judged", "evaluate", str(tmp_path / "my qrels.txt"), f"mine={tmp_path / 'a.run'}"]
    assert words[4:] == ["-m", "R(rel=2)@1", "-m", "NCG@1", "-m", "Judged@1"]
    again = judged.advise(qrels, [tmp_path / "a.run"], "first-stage").command
    assert f" {tmp_path / 'a.run'} -m" in again
    assert "'R(rel=2)@1'" in again  # a shell would trip over the brackets


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: judged.advise({"q": {"a": 1}}, task="web"), "no task 'web'. Fix: use one of assessors, coverage"),
        (lambda: judged.advise({"q": {"a": 1}}, {"p": {"a": 1.0}}), "no topic in common with the qrels: the first"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], problem: str):
    with pytest.raises(judged.InputError, match=problem):
        call()


QRELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcdefghijklmno"), st.sampled_from([-1, 0, 0.5, 1, 1, 2, 3]), min_size=1),
    min_size=1,
)


@st.composite
def runs_for(draw: st.DrawFn, qrels: dict[str, Any]) -> dict[str, Any]:
    """Draw up to two runs that have a topic in common with the qrels."""
    runs: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(["one", "two"]), unique=True)):
        shared = draw(st.sampled_from(sorted(qrels)))
        docs = st.dictionaries(st.sampled_from("abcdefghxyz"), st.sampled_from([0.5, 1.0, 2.0]), min_size=1)
        runs[name] = {shared: draw(docs)} | draw(st.dictionaries(st.sampled_from(["q1", "q2", "q9"]), docs))
    return runs


@settings(max_examples=150)
@given(st.data())
def test_advice_agrees_with_itself_and_can_be_followed(data: st.DataObject):
    qrels = data.draw(QRELS)
    runs = data.draw(runs_for(qrels))
    task = data.draw(st.sampled_from([None, *TASKS]))
    advice = judged.advise(qrels, runs or (), task)
    assert advice.measures
    assert not set(advice.measures) & set(advice.avoid)
    assert shlex.split(advice.command)[-2 * len(advice.measures) :] == [
        word for measure in advice.measures for word in ("-m", str(measure))
    ]
    rules_by_id = {rule.id: rule for rule in RULES}
    for recommendation in advice.recommendations:
        assert rules_by_id[recommendation.rule].holds(advice.profile, advice.task.name)
        assert len(recommendation.facts) == len(rules_by_id[recommendation.rule].facts)
        assert "{" not in recommendation.reason
        assert "{" not in "".join(recommendation.facts)
    json.dumps(advice.to_dict(), allow_nan=False)
    assert all(len(line) <= 80 for line in advice.text(80).splitlines() if not line.startswith("judged evaluate"))
    if runs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", judged.JudgedWarning)
            scores = judged.evaluate(qrels, runs, advice.measures)
        assert [str(measure) for measure in scores.measures] == names(advice)


@settings(max_examples=40)
@given(st.data())
def test_advice_does_not_depend_on_the_order_of_the_data(data: st.DataObject):
    qrels = data.draw(QRELS)
    reversed_qrels = {topic: dict(reversed(docs.items())) for topic, docs in reversed(qrels.items())}
    assert judged.advise(qrels).to_dict() == judged.advise(reversed_qrels).to_dict()


def test_a_set_among_the_runs_leaves_measures_of_sets():
    sets = judged.Run.of([{"query_id": "q", "doc_id": "a"}], name="filter")
    advice = judged.advise({"q": {"a": 1, "b": 2}}, [sets, judged.Run.of({"q": {"b": 1.0}}, name="ranked")], "graded")
    assert names(advice) == ["SetP", "SetR"]
    scores = judged.evaluate({"q": {"a": 1, "b": 2}}, [sets], advice.measures)
    assert [scores.value(name) for name in names(advice)] == [1.0, 0.5]


# The command line, on the sample


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Any]:
    sample.copy(tmp_path / "sample")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["judged", *arguments])
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        capsys.readouterr()
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), *capsys.readouterr()
        return 0, *capsys.readouterr()

    return command


def test_the_sample_as_text(run: Callable[..., Any]):
    code, out, err = run("advise", "-v", "sample/qrels.txt", "sample/runs/bm25.run.gz", "sample/runs/rrf.run.gz")
    assert (code, err) == (0, "")
    assert out.startswith(
        "The task is `graded`: documents are relevant to different degrees, and the first page matters most."
    )
    assert [line for line in out.splitlines() if line.startswith("== ")][-4:] == [
        "== Notes on interpretation ==",
        "== Facts about the data ==",
        "== Sources ==",
        "== Next ==",
    ]
    assert "nDCG@10 + R(rel=2)@50: nDCG measures the page that users see" in out
    text = " ".join(out.split())
    assert "40 of 48 topics have fewer than 10 relevant documents: a perfect ranking has a mean P@10 of" in text
    assert "relevant documents per topic: median 4, from 1 to 26 (rules: rr-hides-coverage," in text
    assert out.endswith(
        "== Next ==\n\njudged evaluate sample/qrels.txt sample/runs/bm25.run.gz sample/runs/rrf.run.gz"
        " -m nDCG@10 -m 'R(rel=2)@50' -m Judged@10\n"
    )


def test_all_runs_of_the_sample_fit_on_a_page(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "100")
    runs = sorted(str(path) for path in Path("sample/runs").iterdir())
    (_, short, _), (_, long, _) = (
        run("advise", "sample/qrels.txt", *runs),
        run("advise", "-v", "sample/qrels.txt", *runs),
    )
    assert len(short.splitlines()) <= 40
    assert set(short.splitlines()) < set(long.splitlines())


def test_two_topics_are_cautioned_against(run: Callable[..., Any]):
    Path("two.txt").write_text("q1 0 a 1\nq2 0 a 1\n")
    assert "== Caution ==" in run("advise", "two.txt")[1]
    assert "== Caution ==" not in run("advise", "sample/qrels.txt")[1]


def test_the_next_command_runs(run: Callable[..., Any]):
    _, out, _ = run("advise", "sample/qrels.txt", "sample/runs/bm25.run.gz", "--task", "rag")
    words = shlex.split(out.splitlines()[-1])
    expected = ["Success(rel=2)@5", "Success(rel=2)@10", "R(rel=2)@10", "nDCG@10", "R(rel=2)@50", "Judged@10"]
    assert words[5::2] == expected
    code, table, _ = run(*words[1:], "--ci", "none", "--format", "csv")
    assert code == 0
    assert [line.split(",")[1] for line in table.splitlines()[1:]] == words[5::2]


def test_the_sample_as_json(run: Callable[..., Any]):
    _, out, _ = run("advise", "sample/qrels.txt", "--format", "json", "--rel", "3")
    advice = json.loads(out)
    assert advice["task"] == {"name": "graded", "description": TASKS["graded"].description, "is_explicit": False}
    assert advice["measures"] == ["nDCG@10", "R(rel=3)@100"]
    assert (advice["profile"]["n"], advice["profile"]["rel"], advice["profile"]["runs"]) == (48, 3.0, [])
    assert advice["command"] == "judged evaluate sample/qrels.txt RUN -m nDCG@10 -m 'R(rel=3)@100'"
    page = next(recommendation for recommendation in advice["entries"] if recommendation["rule"] == "graded-page")
    assert page["facts"] == ["grades: 0, 1, 2, 3"]
    assert page["sources"]["Craswell et al. 2020"].endswith("arXiv:2003.07820, 2020.")


def test_the_sample_as_markdown_in_a_file(run: Callable[..., Any]):
    code, out, _ = run("advise", "sample/qrels.txt", "--task", "coverage", "-o", "advice.md")
    text = Path("advice.md").read_text(encoding="utf-8")
    assert (code, out) == (0, "")
    assert text.startswith("The task is `coverage`: users need all relevant documents")
    assert (
        "- R(rel=2)@100: A later stage cannot recover relevant documents that the first stage did not return." in text
    )
    assert "- Asadi and Lin 2013: Asadi and Lin. Effectiveness/efficiency" in text
    assert "judged evaluate sample/qrels.txt RUN -m 'R(rel=2)@100'" in text


def test_options_of_reading_stay_in_the_command(run: Callable[..., Any], tmp_path: Path):
    (tmp_path / "prefs.txt").write_text("q u1 0 a 2\nq u1 0 b 1\n")
    _, out, _ = run("advise", "prefs.txt", "--qrels-format", "prefs", "--task", "preferences")
    assert out.splitlines()[-1] == "judged evaluate prefs.txt RUN --qrels-format prefs -m Compat -m PrefShare"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("sample/qrels.txt", "-o", "a.cvs"),
            "the format of a result is unknown for .cvs. Fix: use --format, or a name that",
        ),
        (("sample/qrels.txt", "-o", "sample/qrels.txt"), "the output file is also an input. Fix: write the result to"),
        (("missing.txt",), "missing.txt: there is no such file"),
    ],
)
def test_errors_are_one_line(run: Callable[..., Any], arguments: tuple[str, ...], problem: str):
    code, out, err = run("advise", *arguments)
    assert (code, out) == (2, "")
    assert problem in err
    assert err.count("\n") == 1


def test_the_command_knows_every_task():
    (offered,) = (param.type for param in advise_command.params if param.name == "task")
    assert isinstance(offered, click.Choice)
    assert offered.choices == tuple(TASKS)


# Real collections


def shared(*parts: str) -> Path:
    return SHARED.joinpath(*parts)


@needs_shared
def test_deep_learning_passages():
    runs = [
        shared("dl19_passage", "runs_fulldepth_judged", f"{name}.run.gz") for name in ("bm25base_p", "idst_bert_p1")
    ]
    advice = judged.advise(shared("dl19_passage", "qrels", "qrels.dl19-passage.txt"), runs)
    assert (advice.task.name, advice.profile.rel) == ("graded", 2)
    assert names(advice) == ["nDCG@10", "AP(rel=2)", "R(rel=2)@100", "Judged@10"]  # what the track reports
    assert {"level-four-grades", "rr-hides-coverage", "gain"} <= rules(advice)
    assert not {"holes", "ties", "single-label"} & rules(advice)


@needs_shared
@pytest.mark.parametrize("name", ["msmarco-passage.dev-subset", "msmarco-doc.dev"])
def test_one_label_a_topic(name: str):
    advice = judged.advise(shared("small_qrels", "qrels", f"qrels.{name}.txt"))
    assert names(advice) == ["RR@10", "Success@10", "R@100", "R@1000"]
    assert {"single-label", "condensed-without-negatives", "ndcg-is-like-rr", "precision-limited"} <= rules(advice)
    assert [str(measure) for measure in advice.avoid][:3] == ["P@10", "Bpref", "nDCG(judged_only=true)@10"]


@needs_shared
def test_many_relevant_news():
    runs = [shared("robust03", "runs", f"{name}.run.gz") for name in ("SABIR03BASE", "rutcor03100")]
    advice = judged.advise(shared("robust03", "qrels", "robust03_qrels.txt"), runs, "many-relevant")
    assert names(advice) == ["AP", "nDCG@10", "P@10", "R@100", "Rprec", "Judged@10"]
    ties = next(recommendation for recommendation in advice.recommendations if recommendation.rule == "ties")
    assert ties.reason.startswith("96% of the judged documents in the first 10 of rutcor03100 have the same score")


@needs_shared
def test_web_with_junk_and_holes():
    runs = [shared("web2012", "runs", f"indri_ql_{name}.run.gz") for name in ("cata", "catb-filtered")]
    advice = judged.advise(shared("web2012", "qrels", "qrels.web.151-200.txt"), runs)
    assert (advice.task.name, advice.profile.rel, advice.profile.grades[0]) == ("graded", 1, -2)
    assert {"holes", "uneven-holes", "negative-grades", "deep-measures-shallow-pool"} <= rules(advice)
    assert names(advice) == [
        "nDCG@10", "R@100", "RBP(p=0.8)", "RBPResidual(p=0.8)", "nDCG(judged_only=true)@10", "Bpref", "Judged@10",
    ]  # fmt: skip
    uneven = next(recommendation for recommendation in advice.recommendations if recommendation.rule == "uneven-holes")
    assert "77% for indri_ql_catb-filtered, 44% for indri_ql_cata." in uneven.reason


@needs_shared
def test_few_relevant_passages():
    advice = judged.advise(shared("small_qrels", "qrels", "qrels.miracl-v1.0-sw-dev.tsv"))
    assert names(advice) == ["nDCG@10", "R@100"]  # what MIRACL reports
    assert "rr-hides-coverage" not in rules(advice)


@needs_shared
def test_subtopics_of_the_web_track():
    advice = judged.advise(shared("web_ndeval", "qrels", "qrels.web.201-250.ndeval.txt.gz"))
    assert names(advice) == ["AlphanDCG@10", "ERRIA@10", "StRecall@10"]
