"""Dialects: what each tool does, by hand, and that what the caller says goes before it."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from judged import InputError, JudgedWarning, MeasureError, Run, Scores, evaluate, judge
from judged.cli.main import app
from judged.interface.commands.scoring import evaluate_command as command
from judged.scoring.evaluation import DIALECTS, Dialect
from judged.scoring.evaluation.dialects import without_self
from judged.scoring.measures import parse

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")

POLICIES = {  # topics, ties, precision, digits
    "judged": ("qrels", "docid", "double", None),
    "trec_eval-10": ("qrels", "docid", "double", 4),
    "trec_eval-9": ("both", "docid", "single", 4),
    "gdeval": ("both", "docid", "double", 5),
    "ndeval": ("both", "rank", "double", 6),
    "msmarco": ("qrels", "rank", "double", None),
    "beir": ("qrels", "docid", "single", 5),
    "ranx": ("qrels", "docid", "double", None),
}


def test_policies():
    assert {one.name: (one.topics, one.ties, one.precision, one.digits) for one in DIALECTS.values()} == POLICIES
    assert all(one.depth is None for one in DIALECTS.values())
    assert all(one.about.endswith(".") for one in DIALECTS.values())


@pytest.mark.parametrize("name", POLICIES)
def test_the_result_says_what_it_went_by(name, tmp_path):
    run = tmp_path / "one.run"
    run.write_text("q Q0 a 1 0.5 me\n")
    scores = evaluate({"q": {"a": 1}}, run, "AP", dialect=name)
    assert vars(scores.policies) == {
        "topics": POLICIES[name][0],
        "ties": POLICIES[name][1],
        "depth": None,
        "precision": POLICIES[name][2],
        "dialect": name,
        "exclude_self": name == "beir",
    }
    scores.save(tmp_path / "scores.parquet")
    assert Scores.load(tmp_path / "scores.parquet").policies == scores.policies
    assert scores.to_dict()["policies"]["dialect"] == name


def test_no_dialect_is_our_own():
    data = ({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"b": 1.0, "a": 1.0}}, ["AP", "nDCG@10"])
    assert evaluate(*data).policies == evaluate(*data, dialect="judged").policies
    assert evaluate(*data).aggregate() == evaluate(*data, dialect="judged").aggregate()


def test_what_the_caller_says_goes_first():
    qrels, run = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 0.1, "b": 0.1 + 1e-9, "c": 0.0}}
    nine = evaluate(qrels, run, "RR", dialect="trec_eval-9")
    assert nine.aggregate() == {"run": {"RR": 0.5}}
    given = {"topics": "qrels", "ties": "docid-rising", "depth": 2, "precision": "single"}
    scores = evaluate(qrels, run, ["RR", "NumRet"], dialect="trec_eval-9", **given)
    assert vars(scores.policies) == {**given, "dialect": "trec_eval-9", "exclude_self": False}
    assert scores.aggregate() == {"run": {"RR": 1 / 2, "NumRet": 2.0}}  # found at 1 of q, r is missing


def test_an_own_dialect():
    rising = Dialect("mine", "Ties by rising id.", ties="docid-rising")
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "RR", dialect=rising).value("RR") == 1.0


def test_unknown_dialects():
    with pytest.raises(
        InputError, match=r"unknown dialect 'treceval'. Fix: use one of judged, trec_eval-10, trec_eval-9, gdev"
    ):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, dialect="treceval")


@pytest.mark.parametrize(
    ("dialect", "written", "names"),
    [
        ("trec_eval-10", "map", ["AP"]),
        ("trec_eval-10", "P.5,10", ["P@5", "P@10"]),
        ("trec_eval-10", "success", ["Success@1", "Success@5", "Success@10"]),
        ("trec_eval-10", "set_F.4", ["SetF(beta=2)"]),
        ("trec_eval-10", "iprec_at_recall.0.1", ["IPrec@0.1"]),
        ("trec_eval-9", "iprec_at_recall.0.1", ["IPrec(rounding=up)@0.1"]),
        ("trec_eval-9", "iprec_at_recall_0.10", ["IPrec(rounding=up)@0.1"]),
        ("trec_eval-9", "11pt_avg", ["AP11(rounding=up)"]),
        ("trec_eval-9", "ndcg_cut_10", ["nDCG@10"]),
        ("trec_eval-9", "nDCG@10", ["nDCG@10"]),
        ("gdeval", "ndcg@20", ["nDCG(gain=exp2,undefined=skip)@20"]),
        ("gdeval", "nDCG@5,10", ["nDCG(gain=exp2,undefined=skip)@5", "nDCG(gain=exp2,undefined=skip)@10"]),
        ("gdeval", "err", ["ERR(max=4,undefined=skip)@20"]),
        ("gdeval", "AP", ["AP"]),
        ("ndeval", "alpha-nDCG@20", ["AlphanDCG@20"]),
        ("ndeval", "strec@5", ["StRecall@5"]),
        ("ndeval", "MAP-IA", ["APIA"]),
        ("msmarco", "MRR @10", ["RR@10"]),
        ("msmarco", "mrr@10", ["RR@10"]),
        ("beir", "NDCG@10", ["nDCG@10"]),
        ("beir", "MAP@100", ["AP@100"]),
        ("beir", "Recall@100", ["R@100"]),
        ("beir", "P@10", ["P@10"]),
        ("beir", "MRR@10", ["RR@10"]),
        ("beir", "R_cap@10", ["RelP@10"]),
        ("beir", "Hole@10", ["Hole@10"]),
        ("beir", "Accuracy@10", ["Success@10"]),
        ("ranx", "ndcg@10-l2", ["nDCG(gain={0:0,1:0,2:2,3:3})@10"]),
        ("ranx", "ndcg_burges-l3", ["nDCG(gain={0:0,1:0,2:0,3:7})"]),
        ("ranx", "precision", ["SetP"]),
        ("ranx", "f1@5", ["F@5"]),
        ("ranx", "hits@5", ["NumRelRet@5"]),
        ("judged", "ndcg_cut_10", ["nDCG@10"]),
    ],
)
def test_names(dialect, written, names):
    measures = DIALECTS[dialect].measures(written, [0, 1, 2, 3])
    assert list(map(str, measures)) == names
    assert DIALECTS[dialect].measures(measures) == measures  # a measure is left as it is


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unknown_names(dialect):
    with pytest.raises(MeasureError, match="there is no measure 'ndgc'"):
        DIALECTS[dialect].measures("ndgc@10")


@pytest.mark.parametrize(
    ("name", "message"),
    [("P.0", "a cutoff must be 1 or more"), ("relstring", "relstring is text"), ("utility.1", "takes 4 coefficients")],
)
def test_names_that_trec_eval_refuses_or_prints_as_text(name, message):
    with pytest.raises(MeasureError, match=message):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, name, dialect="trec_eval-10")


def test_scores_are_asked_for_in_the_words_of_the_tool():
    scores = evaluate({"q": {"a": 2, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}, ["ndcg@20", "err@20"], dialect="gdeval")
    assert scores.value("err@20") == scores.value("ERR(max=4,undefined=skip)@20") == 1 / 16 + 15 / 16 * 3 / 16 / 2
    with pytest.raises(InputError, match="was not evaluated"):
        scores.value("ndcg@10")


@pytest.mark.parametrize(
    ("dialect", "count", "first"),
    [("trec_eval-10", 29, "NumQ"), ("gdeval", 2, "nDCG(gain=exp2,undefined=skip)@20"), ("ndeval", 21, "ERRIA@5"),
     ("msmarco", 1, "RR@10"), ("beir", 24, "nDCG@1"), ("ranx", 6, "nDCG@10"), ("judged", 6, "nDCG@10")],
)  # fmt: skip
def test_what_a_tool_computes_unasked(dialect, count, first):
    ties = {"ties": "stable"} if DIALECTS[dialect].ties == "rank" else {}
    names = evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, dialect=dialect, **ties).measure_names
    assert (len(names), names[0]) == (count, first)


def test_msmarco_by_hand(tmp_path):
    """Ranks order, every row of the qrels is relevant, the mean is over the qrels' three topics."""
    qrels, run = tmp_path / "qrels.tsv", tmp_path / "run.tsv"
    qrels.write_text("1\t0\t10\t1\n2\t0\t20\t0\n3\t0\t30\t1\n")
    run.write_text("".join(f"1\t{doc}\t{rank}\n" for rank, doc in enumerate([99, 98, 97, 10], 1))
                   + "".join(f"2\t{doc}\t{rank}\n" for rank, doc in enumerate([20, 91], 1))
                   + "4\t10\t1\n")  # fmt: skip
    scores = evaluate(qrels, run, "MRR @10", dialect="msmarco")
    assert scores.per_topic()[scores.run_names[0]] == {"RR@10": {"1": 1 / 4, "2": 1.0, "3": 0.0}}
    assert scores.value("MRR @10") == (1 / 4 + 1) / 3
    assert DIALECTS["msmarco"].format_value(scores.value("MRR @10")) == "0.4166666666666667"
    eleventh = tmp_path / "deep.tsv"
    eleventh.write_text("".join(f"1\t{doc}\t{rank}\n" for rank, doc in enumerate([*range(50, 60), 10], 1)))
    assert evaluate(qrels, eleventh, dialect="msmarco").value("MRR@10") == 0.0


def test_msmarco_and_ndeval_look_at_ranks_only(tmp_path):
    run = tmp_path / "upside.run"
    run.write_text("q Q0 a 1 0.1 me\nq Q0 b 2 0.9 me\n")
    for dialect, value in (("msmarco", 1.0), ("ndeval", 1.0), ("gdeval", 0.5), ("trec_eval-10", 0.5)):
        assert evaluate({"q": {"a": 1, "c": 0}}, run, "RR", dialect=dialect).value("RR") == value
    assert evaluate({"q": {"a": 1}}, run, "RR", dialect="ndeval", ties="docid").value("RR") == 0.5  # -traditional
    with pytest.raises(InputError, match=r"requires a rank column\. Fix: use another value"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, dialect="msmarco")


BEIR_QRELS = {"a": {"b": 1, "c": 2, "a": 1}, "d": {"e": 1}, "f": {"g": 1}}
BEIR_RUN = {"a": {"a": 9.0, "c": 8.0, "x": 7.0, "e": 6.5, "b": 6.0}, "d": {"x": 2.0, "e": 1.0}}


def test_beir_by_hand():
    """Topic a returns itself, which is left out of the run though not of the qrels; f is missing from the run."""
    names = ["NDCG@3", "MAP@3", "Recall@3", "P@3", "MRR@3", "R_cap@1", "Hole@3", "Accuracy@1"]
    scores = evaluate(BEIR_QRELS, BEIR_RUN, names, dialect="beir")
    ideal = 2 + 1 / math.log2(3) + 1 / 2
    expected = {
        "nDCG@3": {"a": 2 / ideal, "d": 1 / math.log2(3), "f": math.nan},
        "AP@3": {"a": 1 / 3, "d": 1 / 2, "f": math.nan},
        "R@3": {"a": 1 / 3, "d": 1.0, "f": math.nan},
        "P@3": {"a": 1 / 3, "d": 1 / 3, "f": math.nan},
        "RR@3": {"a": 1.0, "d": 1 / 2, "f": 0.0},
        "RelP@1": {"a": 1.0, "d": 0.0, "f": 0.0},
        "Hole@3": {"a": 1 / 3, "d": 1 / 3, "f": 0.0},  # x is judged for no topic; e is, for d
        "Success@1": {"a": 1.0, "d": 0.0, "f": 0.0},
    }
    found = scores.per_topic()["run"]
    assert found == {name: pytest.approx(values, abs=1e-15, nan_ok=True) for name, values in expected.items()}
    assert DIALECTS["beir"].format_value(scores.value("NDCG@3")) == "0.63486"
    assert BEIR_RUN["a"]["a"] == 9.0  # BEIR takes it out of the caller's dict


CASES = json.loads((Path(__file__).parent / "beir-2.2.0.json").read_text(encoding="utf-8"))["cases"]
"""What BEIR 2.2.0 returned (evaluate, then evaluate_custom) for collections without ties: qrels, run, values."""


@pytest.mark.parametrize("case", CASES)
def test_beir_2_2_0_itself(case):
    """Runs lack up to two of five topics, and return documents that have the id of the topic."""
    values = case["values"]
    scores = evaluate(case["qrels"], case["run"], list(values), dialect="beir")
    found = {name: round(scores.value(name), 5) for name in values}
    assert found == pytest.approx(values, abs=1.1e-5)  # a sum in another order may round to the other side


def test_topics_that_a_run_lacks_count_by_measure_unless_the_call_says_otherwise():
    """Of two topics the run has one: MRR is 1/2 over both, NDCG 1 over one."""
    qrels, run = {"1": {"a": 1}, "2": {"b": 1}}, {"1": {"a": 1.0}}
    scores = evaluate(qrels, {"mine": run, "all": {**run, "2": {"b": 1.0}}}, ["MRR@10", "NDCG@10"], dialect="beir")
    assert scores.aggregate() == {"mine": {"RR@10": 0.5, "nDCG@10": 1.0}, "all": {"RR@10": 1.0, "nDCG@10": 1.0}}
    for topics, expected in (("qrels", 0.5), ("both", 1.0)):
        chosen = evaluate(qrels, run, ["MRR@10", "NDCG@10"], dialect="beir", topics=topics)
        assert chosen.aggregate()["run"] == {"RR@10": expected, "nDCG@10": expected}


def test_a_topic_that_does_not_count_has_no_range_either():
    qrels, run = {"1": {"a": 1}, "2": {"b": 1}}, {"1": {"a": 1.0, "c": 1.0}}
    scores = evaluate(qrels, run, ["RR@10", "nDCG@10"], dialect="beir", ties="bounds")
    (ranges,) = scores.ranges
    assert ranges.low[0].tolist() == [
        [0.5, 0.0],
        [pytest.approx(1 / math.log2(3)), pytest.approx(math.nan, nan_ok=True)],
    ]
    assert ranges.high[0, :, 0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("lines", [1, 40_000])
def test_beir_leaves_the_query_out_of_files_too(tmp_path, lines):
    """The same from a file, which is read in blocks, and with the file's own hash; scattered topics too."""
    text = "".join(
        f"{topic} Q0 {doc} 1 {score} me\n" for topic, docs in BEIR_RUN.items() for doc, score in docs.items()
    )
    text += "".join(f"extra{number % 9} Q0 extra{number % 9} 1 1 me\n" for number in range(lines))
    run = tmp_path / "one.run.gz"
    run.write_bytes(gzip.compress(text.encode()))
    from_file = evaluate(BEIR_QRELS, run, ["NDCG@3", "Hole@3", "NumRet"], dialect="beir")
    from_dict = evaluate(BEIR_QRELS, BEIR_RUN, ["NDCG@3", "Hole@3", "NumRet"], dialect="beir")
    expected = {name: pytest.approx(values, nan_ok=True) for name, values in from_dict.per_topic()["run"].items()}
    assert from_file.per_topic()["one"] == expected
    assert from_file.runs[0].sha256 == hashlib.sha256(run.read_bytes()).hexdigest()


def test_beir_leaves_the_query_out_of_tables_too():
    polars = pytest.importorskip("polars")
    rows = [(topic, doc, score) for topic, docs in BEIR_RUN.items() for doc, score in docs.items()]
    frame = polars.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    assert evaluate(BEIR_QRELS, frame, "NDCG@3", dialect="beir").value("NDCG@3") == pytest.approx(0.63486, abs=1e-5)


def test_a_duplicate_keeps_its_line_where_the_query_is_left_out(tmp_path):
    run = tmp_path / "one.run"
    run.write_text("a Q0 a 1 3 me\na Q0 b 2 2 me\na Q0 b 3 1 me\n")
    with pytest.raises(InputError, match=r"one.run:3: document b is returned twice for topic a"):
        evaluate(BEIR_QRELS, run, dialect="beir")


def test_gdeval_by_hand():
    """Only topics with a positive grade that the run has; a gain of 3 for grade 2."""
    qrels = {"1": {"a": 2, "b": 1}, "2": {"a": 0, "b": -2}, "3": {"a": 1}, "4": {"b": 4}}
    run = {"1": {"b": 2.0, "a": 1.0}, "2": {"a": 1.0}, "4": {"a": 1.0}, "5": {"a": 1.0}}
    scores = evaluate(qrels, run, dialect="gdeval")
    one = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert scores.value("ndcg@20") == pytest.approx((one + 0) / 2, abs=1e-15)
    assert scores.estimates(ci="none")[0].n == 2
    everything = evaluate(qrels, run, dialect="gdeval", topics="qrels")  # gdeval -c: topic 3 counts, 2 still does not
    assert everything.value("ndcg@20") == pytest.approx(one / 3, abs=1e-15)


def test_warnings_speak_of_the_dialects_topics():
    with pytest.warns(JudgedWarning, match="no documents returned for 1 of 2"):
        scores = evaluate({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}}, "AP", dialect="trec_eval-9")
    assert any("(excluded from the means" in text for text in scores.warnings)


def test_runs_are_told_apart_under_a_dialect():
    runs = {"one": {"q": {"q": 2.0, "a": 1.0}}, "two": {"q": {"a": 1.0}}}
    scores = evaluate({"q": {"a": 1}}, runs, "MRR@10", dialect="beir")
    assert scores.aggregate() == {"one": {"RR@10": 1.0}, "two": {"RR@10": 1.0}}


def test_nothing_but_the_query_returned():
    run = Run.of({"q": {"q": 1.0}, "r": {"a": 1.0}})
    assert DIALECTS["beir"].exclude_self
    assert judge({"q": {"a": 1}, "r": {"a": 1}}, without_self(run)).returned.tolist() == [0, 1]


def test_the_command(tmp_path: Path):
    qrels, run = tmp_path / "q.txt", tmp_path / "one.run"
    qrels.write_text("1 0 a 2\n1 0 b 1\n2 0 a 0\n3 0 a 1\n")
    run.write_text("1 Q0 b 1 0.9 me\n1 Q0 a 2 0.8 me\n2 Q0 a 1 1 me\n")
    call = ["evaluate", str(qrels), str(run), "--dialect", "gdeval", "--format"]
    done = CliRunner().invoke(app, [*call, "json"])
    made = json.loads(done.stdout)
    assert made["policies"]["dialect"] == "gdeval"
    assert made["policies"]["topics"] == "both"
    assert [one["measure"] for one in made["results"]] == [
        "nDCG(gain=exp2,undefined=skip)@20",
        "ERR(max=4,undefined=skip)@20",
    ]
    assert made["results"][1]["value"] == 1 / 16 + 15 / 16 * 3 / 16 / 2
    shown = CliRunner().invoke(app, [*call, "table", "-m", "ndcg@5", "--topics", "qrels"]).stdout
    assert "gdeval: over the 3 topics of the qrels; ties by descending document id" in shown
    single = (
        CliRunner()
        .invoke(app, ["evaluate", str(qrels), str(run), "--dialect", "trec_eval-9"])
        .stdout.replace("\n", " ")
    )
    assert (
        "trec_eval-9: over the topics that qrels and run have in common; ties by descending document id; scores co"
        in single
    )
    wrong = CliRunner().invoke(app, ["evaluate", str(qrels), str(run), "--dialect", "treceval"])
    assert wrong.exit_code == 2
    own = CliRunner().invoke(app, ["evaluate", str(qrels), str(run)]).stdout
    assert "Over the 3 topics of the qrels; ties by descending document id;" in own


def test_the_commands_choices_are_the_dialects():
    option = next(one for one in command.params if one.name == "dialect")
    assert set(option.type.choices) == set(DIALECTS) - {"judged"}


def test_parse_reads_names_as_ours_whatever_a_dialect_says():
    assert str(parse("ndcg@20")) == "nDCG@20"
