"""Scores in all their forms: tables, documents, files, text."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import judged
from judged import InputError, MissingExtraError, Scores, evaluate
from judged.errors import OutputError

QRELS = {"q1": {"d1": 2, "d2": 1}, "q2": {"d1": 1}, "q3": {"d1": 0}, "q4": {"d5": 1}}
RUNS = {
    "bm25": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"x": 2.0, "d1": 1.0}, "q3": {"d1": 1.0}, "zz": {"d1": 1.0}},
    "<b>new</b>": {"q1": {"d2": 2.0, "y": 1.0}, "q2": {"d1": 1.0}, "q3": {"d1": 1.0}, "q4": {"d5": 1.0}},
}
MEASURES = ["AP", "AP(undefined=skip)", "nDCG(gain={1:1,2:5})@10", "NumRet", "NumQ"]
KEYS = {"judged", "qrels", "policies", "runs", "results"}
RUN_KEYS = {"path", "returned_topics", "missing_topics", "extra_topics", "warnings"}
RESULT_KEYS = {"run", "measure", "aggregate", "value", "ci", "n"}

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")


def table(**options: Any) -> Scores:
    return evaluate(QRELS, RUNS, MEASURES, **options)


def test_numbers_by_hand() -> None:
    found = table().aggregate()
    assert found["bm25"]["AP"] == (1 + 1 / 2 + 0 + 0) / 4
    assert found["bm25"]["AP(undefined=skip)"] == (1 + 1 / 2 + 0) / 3
    assert found["bm25"]["NumRet"] == 5
    assert found["<b>new</b>"]["AP"] == (1 / 2 + 1 + 0 + 1) / 4
    ideal = 5 + 1 / math.log2(3)
    assert found["<b>new</b>"]["nDCG(gain={1:1,2:5})@10"] == pytest.approx((1 / ideal + 1 + 0 + 1) / 4, rel=1e-15)
    assert table().value("map", "bm25") == found["bm25"]["AP"]
    assert table().value(judged.measures.NumQ(), run="bm25") == 4.0


def test_per_topic_and_nan() -> None:
    by_topic = table().per_topic()
    assert list(by_topic) == ["bm25", "<b>new</b>"]
    assert list(by_topic["bm25"]) == [str(judged.measures.parse(name)) for name in MEASURES]
    skipped = by_topic["bm25"]["AP(undefined=skip)"]
    assert list(skipped) == ["q1", "q2", "q3", "q4"]
    assert math.isnan(skipped["q3"])
    assert skipped["q2"] == 0.5


@pytest.mark.parametrize(
    ("measure", "run", "message"),
    [
        ("RR", "bm25", "RR was not evaluated. Fix: evaluate this measure, or use one of AP, "),
        ("AP", "other", "no run 'other'. Fix: use one of bm25, <b>new</b>"),
        ("AP", None, "`run` is required for scores of several runs. Fix: use one of bm25, <b>new</b>"),
    ],
)
def test_asking_for_what_is_not_there(measure: str, run: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught:
        table().value(measure, run)
    assert message in str(caught.value)


def test_a_measure_that_was_asked_for_is_never_one_at_another_level() -> None:
    qrels, runs = {"q1": {"a": 1, "b": 2}, "q2": {"b": 2}}, {"old": {"q1": ["a", "b"], "q2": ["b"]}}
    both = runs | {"new": {"q1": ["b", "a"], "q2": ["b"]}}
    scores = judged.evaluate(qrels, both, ["R(rel=2)@1", "RR(rel=2)"])
    costs = {"old": {"ms": 1.0}, "new": {"ms": 2.0}}
    for ask in (
        lambda: scores.value("RR", "old"),
        lambda: scores.compare(measures="RR"),
        lambda: scores.matrix(x="R@1", y="RR(rel=2)"),
        lambda: scores.tradeoff(costs, measure="RR"),
    ):
        with pytest.raises(InputError, match="was not evaluated"):
            ask()
    assert scores.value("mrr-l2", "old") == 0.75  # another spelling of the same
    leveled = judged.tradeoff(qrels, both, costs, "RR", measure="RR", rel=2)  # a call's level is that of its names
    placed = judged.matrix(qrels, both, x="R@1", y="RR", rel=2)
    assert (str(leveled.measure), str(placed.x), str(placed.y)) == ("RR(rel=2)", "R(rel=2)@1", "RR(rel=2)")


# --- frames -----------------------------------------------------------------------------------------


def test_the_long_table() -> None:
    scores = table(topics="both")
    found = scores.to_arrow()
    assert found.column_names == ["run", "measure", "query_id", "value"]
    assert found.num_rows == (3 + 4) * len(MEASURES)
    by_topic = scores.per_topic()
    for row in found.to_pylist():
        value = by_topic[row["run"]][row["measure"]][row["query_id"]]
        assert row["value"] == value or (math.isnan(row["value"]) and math.isnan(value))
    assert found["query_id"].type == pa.string()
    assert found["value"].type == pa.float64()


def test_frames_of_other_libraries() -> None:
    scores = table()
    rows = scores.to_arrow().to_pydict()
    polars, pandas = scores.to_polars(), scores.to_pandas()
    assert type(polars).__module__.startswith("polars")
    assert type(pandas).__module__.startswith("pandas")
    assert polars.columns == list(pandas.columns) == list(rows)
    for name in ("run", "measure", "query_id"):
        assert polars[name].to_list() == pandas[name].tolist() == rows[name]
    for values in (polars["value"].to_numpy(), pandas["value"].to_numpy()):
        assert np.array_equal(values, rows["value"], equal_nan=True)


@pytest.mark.parametrize(("method", "library"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_a_missing_library_is_named_with_its_install_command(method: str, library: str) -> None:
    scores = table()
    frame = patch.object(Scores, "to_arrow", side_effect=ImportError)  # what Arrow raises without pandas
    message = rf"{library} is not installed\. Fix: pip install 'judged\[{library}\]'"
    with patch.dict("sys.modules", {library: None}), frame, pytest.raises(MissingExtraError, match=message):
        getattr(scores, method)()


# --- the document -----------------------------------------------------------------------------------


def test_the_document_has_its_keys() -> None:
    made = table().to_dict()
    assert set(made) >= KEYS
    assert set(made["qrels"]) >= {"path", "n", "judgments"}
    assert set(made["policies"]) >= {"topics", "ties", "depth"}
    assert list(made["runs"]) == ["bm25", "<b>new</b>"]
    for run in made["runs"].values():
        assert set(run) >= RUN_KEYS
    assert len(made["results"]) == 2 * len(MEASURES)
    for result in made["results"]:
        assert set(result) == RESULT_KEYS
    assert made["judged"] == judged.__version__


def test_the_document_by_hand() -> None:
    made = table().summary(ci="t", level=0.9).to_dict()
    bm25 = made["runs"]["bm25"]
    assert bm25["missing_topics"] == ["q4"]
    assert (bm25["returned_topics"], bm25["extra_topics"], bm25["path"]) == (4, 1, "<dict>")
    assert "no documents returned for 1 of 4 topics (score 0): q4" in bm25["warnings"]
    assert made["policies"]["ci"] == {"name": "t", "level": 0.9, "resamples": 2000, "seed": 0}
    first = made["results"][0]
    values = np.array([1, 0.5, 0, 0])
    half = 2.353363 * values.std(ddof=1) / 2  # t(.95; 3) = 2.353363
    assert first["ci"] == pytest.approx([values.mean() - half, values.mean() + half], rel=1e-6)
    assert {key: first[key] for key in ("run", "measure", "aggregate", "value", "n")} == {
        "run": "bm25", "measure": "AP", "aggregate": "mean", "value": 0.375, "n": 4,
    }  # fmt: skip
    skipped = made["results"][1]
    assert (skipped["value"], skipped["n"]) == (0.5, 3)
    assert [result["aggregate"] for result in made["results"][:5]] == ["mean", "mean", "mean", "sum", "count"]


def test_the_document_is_json_without_nan() -> None:
    scores = evaluate({"q1": {"d": 0}, "q2": {"d": 0}}, {"q1": {"d": 1.0}}, ["AP(undefined=skip)"])
    made = scores.summary(per_topic=True).to_dict()
    text = json.dumps(made, allow_nan=False)
    (result,) = json.loads(text)["results"]
    assert result["value"] is None
    assert result["n"] == 0
    assert result["ci"] is None
    assert result["per_topic"] == {"q1": None, "q2": None}


def test_per_topic_values_in_the_document_are_exact() -> None:
    scores = table()
    made = json.loads(json.dumps(scores.summary(per_topic=True).to_dict()))
    for result in made["results"]:
        values = scores.per_topic()[result["run"]][result["measure"]]
        assert result["per_topic"] == {query: None if math.isnan(v) else v for query, v in values.items()}


def test_a_document_can_be_made_again() -> None:
    one, again, other = (table().summary(ci="bootstrap", seed=seed).to_dict() for seed in (3, 3, 4))
    assert one == again
    assert one["results"] != other["results"]


# --- files ------------------------------------------------------------------------------------------


def assert_same(one: Scores, other: Scores) -> None:
    for name in ("runs", "measures", "query_ids", "policies", "qrels", "notes", "versions", "warnings"):
        assert getattr(one, name) == getattr(other, name), name
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert one.values.dtype == other.values.dtype
    assert one.counted.tolist() == other.counted.tolist()
    assert one.to_dict() == other.to_dict() or "nan" in repr(one.to_dict())
    assert repr(one) == repr(other)


@pytest.mark.parametrize("policy", ["qrels", "both", "run"])
def test_saved_and_loaded(policy: str, tmp_path: Path) -> None:
    scores = table(topics=policy, depth=2)
    scores.save(tmp_path / "scores.parquet")
    assert_same(Scores.load(tmp_path / "scores.parquet"), scores)
    assert parquet.read_table(tmp_path / "scores.parquet").num_rows == scores.to_arrow().num_rows


def test_odd_ids_and_values_are_saved(tmp_path: Path) -> None:
    qrels = {'é"日': {"\U0001d4b3": 4, "d": -1}, "007": {"d": 0.5}}
    scores = evaluate(
        qrels, {"a,b\n": {'é"日': {"\U0001d4b3": math.inf}}}, ["DCG(gain=exp2)", "RR(undefined=skip)", "CG"]
    )
    scores.save(str(tmp_path / "s.parquet"))
    again = Scores.load(str(tmp_path / "s.parquet"))
    assert_same(again, scores)
    assert math.isnan(again.per_topic()["a,b\n"]["RR(undefined=skip)"]["007"])


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    table().save(path)
    kept = path.read_bytes()
    full = patch.object(Path, "write_bytes", side_effect=OSError(28, "No space left on device"))
    with full, pytest.raises(OutputError, match="no space left"):
        table().save(path)
    with patch.object(Path, "write_bytes", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        table().save(path)
    assert path.read_bytes() == kept
    assert [file.name for file in tmp_path.iterdir()] == ["scores.parquet"]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the file cannot be written"):
        table().save(tmp_path / "no" / "scores.parquet")
    with pytest.raises(InputError, match=r"expected a file, got a folder\. Fix: use the path of a file"):
        table().save(tmp_path)


def test_what_is_no_file_of_scores(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("q1 Q0 d1 1 2.0 t\n")
    (tmp_path / "empty").touch()
    parquet.write_table(pa.table({"run": ["a"]}), tmp_path / "other.parquet")
    for name in ("text", "empty", "other.parquet", "missing"):
        with pytest.raises(InputError, match="Fix: ") as caught:
            Scores.load(tmp_path / name)
        assert caught.value.path == str(tmp_path / name)


# --- text -------------------------------------------------------------------------------------------


def test_the_text() -> None:
    text = repr(table())
    lines = text.splitlines()
    assert lines[0].split() == ["run", "AP", "AP(undefined=skip)", "nDCG(gain={1:1,2:5})@10", "NumRet", "NumQ"]
    assert re.match(r"bm25 +0\.3750 \[0\.\d{3}, \d\.\d{3}\] +0\.5000 \[", lines[1])
    assert lines[1].split()[-2:] == ["5", "4"]
    assert lines[2].startswith("<b>new</b>  0.6250 [")
    assert "warning: bm25: no documents returned for 1 of 4 topics (score 0): q4" in lines
    assert str(table()) == text


def test_the_html_is_escaped() -> None:
    html = table()._repr_html_()
    assert "<b>" not in html
    assert html.count("&lt;b&gt;new&lt;/b&gt;") >= 1
    assert html.count("<tr>") == html.count("</tr>") == 3
    assert html.count("<td") == 2 * len(MEASURES)  # and a head for each row
    assert "0.3750 <span" in html
    assert "<li>bm25: no documents returned for 1 of 4 topics (score 0): q4</li>" in html
    assert html.count("<table>") == html.count("</table>") == 1


@pytest.mark.parametrize("what", ["a bit of a score", "a name", "a key", "a shorter list", "nesting"])
def test_saved_scores_that_are_no_longer_what_was_saved_are_refused(tmp_path: Path, what: str) -> None:
    """A changed number would be believed; changed facts would end in a traceback."""
    path = tmp_path / "scores.parquet"
    evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 1.0}}, ["AP"]).save(path)
    assert Scores.load(path).value("AP") == 1.0
    table = parquet.read_table(path)
    facts = table.schema.metadata[b"judged"]
    if what == "a bit of a score":
        table = table.set_column(3, "value", pa.array([0.5]))
    changed = {
        "a name": facts.replace(b'"q1"', b'"q2"'),
        "a key": facts.replace(b'"runs"', b'"rums"'),
        "a shorter list": facts.replace(b'["AP"]', b"[]"),
        "nesting": b"[" * 100_000,
    }.get(what, facts)
    parquet.write_table(table.replace_schema_metadata({**table.schema.metadata, b"judged": changed}), path)
    with pytest.raises(InputError, match=r"scores\.parquet: the scores or their provenance were changed"):
        Scores.load(path)


def test_scores_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scores.parquet"
    scores = evaluate({"q1": {"d1": 1}}, {"q1": {"d1": 1.0}}, ["AP"])
    with monkeypatch.context() as patched:
        patched.setattr(dataclasses, "asdict", lambda _: {"other": 1})
        scores.save(path)
    with pytest.raises(InputError, match=r"scores\.parquet: another version of judged wrote the file"):
        Scores.load(path)
