"""The commands `judged labels`: from topics and pairs to qrels, and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judged import Qrels
from judged.labels import LabelStore, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.csv").write_text("query_id,text,description\n1,who wrote Faust,its author\n2,red shoes,\n")
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "a", "title": "Faust", "text": "secret text"}\n')
    (tmp_path / "pool.csv").write_text("query_id,doc_id,stratum,probability\n1,a,1,1\n1,b,2,0.5\n2,a,1,1\n2,c,1,1\n")
    (tmp_path / "gold.txt").write_text("2 0 z 3\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_new_judge_with_a_similar_name_is_a_warning(run: Callable[..., Ended]) -> None:
    """Names that differ only in digits are those of different judges."""
    run("labels", "new", "l.db", "--topics", "topics.csv")
    assert run("labels", "judges", "l.db", "ann", "judge1", "judge2").err == ""
    imported = run("labels", "import", "l.db", "gold.txt", "--judge", "anm")
    assert "anm is a new judge. If you meant the existing judge ann" in imported.err
    assert run("labels", "import", "l.db", "gold.txt", "--judge", "ann").err == ""
    assert "judge ann," in run("labels", "tasks", "l.db", "pool.csv", "--judges", "Ann").err
    assert run("labels", "judges", "l.db", "zoe", "judge3").err == ""


def test_from_topics_to_qrels(folder: Path, run: Callable[..., Ended]) -> None:
    created = run("labels", "new", "l.db", "--scale", "0-3", "--topics", "topics.csv", "--documents", "docs.jsonl")
    assert created.code == 0
    tokens = dict(line.split("\t") for line in run("labels", "judges", "l.db", "ann", "bob").out.splitlines())
    shared = ("--judges", "ann, bob", "--overlap", "0.5", "--repeats", "0.2", "--gold", "gold.txt", "--seed", "3")
    assert run("labels", "tasks", "l.db", "pool.csv", *shared).code == 0
    with LabelStore.open("l.db") as store:
        assert [store.judge_with_token(tokens[name]) for name in ("ann", "bob")] == ["ann", "bob"]
        assert store.topic("1")["description"] == "its author"
        before = store.all_tasks()
        assert {(task.doc_id, task.gold) for task in before if task.gold is not None} == {("z", 3.0)}
        for judge, grade in (("ann", 2.0), ("bob", 1.0)):
            for task in store.tasks(judge):
                store.add(judge, task.query_id, task.doc_id, grade, repeat=task.repeat, note="private", seconds=2.0)
    assert run("labels", "tasks", "l.db", "pool.csv", *shared).code == 0  # no new tasks
    with LabelStore.open("l.db") as store:
        assert store.all_tasks() == before
    (folder / "zero.csv").write_text("query,users\nwho wrote faust,3\n")
    run("labels", "new", "other.db", "--topics", "topics.csv")
    assert run("labels", "tasks", "other.db", "pool.csv", "--queries", "zero.csv").code == 0
    with LabelStore.open("other.db") as store:
        assert {task[:2] for task in store.all_tasks()} == {("1", "a"), ("1", "b")}
    assert '"remaining": 0' in run("labels", "status", "l.db", "--format", "json").out
    ended = run("labels", "qrels", "l.db", "--by", "mean", "-o", "qrels.txt")
    assert (ended.code, Qrels.read("qrels.txt").origin.how) == (0, "mean")  # type: ignore[union-attr]
    for options in (
        ("labels", "out.csv"),
        ("labels", "out.jsonl"),
        ("quepid", "q.csv"),
        ("search-relevance", "s.json"),
    ):
        assert run("labels", "export", "l.db", "--to", options[0], "-o", options[1]).code == 0
        written = (folder / options[1]).read_text()
        assert "secret" not in written
        assert "private" not in written
    assert (
        "private" in (run("labels", "export", "l.db", "--notes", "-o", "out.csv"), (folder / "out.csv").read_text())[1]
    )
    run("labels", "qrels", "out.csv", "--by", "mean", "-o", "again.txt")
    assert (folder / "again.txt").read_text() == (folder / "qrels.txt").read_text()


def test_labels_of_models_give_warnings(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "llm.txt").write_text("1 0 a 3\n2 0 c 1\n")
    (folder / "x.run").write_text("1 Q0 a 1 2.0 x\n2 Q0 c 1 2.0 x\n")
    run("labels", "new", "l.db")
    run("labels", "import", "l.db", "llm.txt", "--judge", "llm", "--kind", "model")
    created = run("labels", "qrels", "l.db", "-o", "qrels.txt")
    evaluated = run("evaluate", "qrels.txt", "x.run", "-m", "AP", "--format", "json")
    assert created.code == evaluated.code == 0
    assert "warning" in created.err
    assert '"model-judgments"' in evaluated.out
    files = ("qrels.txt", "x.run")
    for command in (("explain", *files, "-m", "AP", "--topic", "1"), ("collection", "check", *files)):
        ended = run(*command)
        assert "from language models" in ended.out + ended.err
    (folder / "y.run").write_text("1 Q0 c 1 2.0 y\n2 Q0 a 1 2.0 y\n")
    ended = run("leave-one-out", *files, "y.run")
    assert "from language models" in ended.out + ended.err


def test_a_custom_scale(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "scale.csv").write_text("grade,word,definition\n1,yes,it is\n0,no,it is not\n")
    assert run("labels", "new", "l.db", "--scale", "scale.csv").code == 0
    with LabelStore.open("l.db") as store:
        assert [grade.word for grade in store.scale] == ["no", "yes"]
    (folder / "scale.csv").write_text("grade,word\n1,yes\nx,no\n")
    ended = run("labels", "new", "other.db", "--scale", "scale.csv")
    assert (ended.code, "scale.csv:3" in ended.err, (folder / "other.db").exists()) == (2, True, False)


def test_an_invalid_scale_creates_no_store(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "scale.csv").write_text("grade,word\n1,yes\n")
    ended = run("labels", "new", "l.db", "--scale", "scale.csv")
    assert (ended.code, "scale.csv" in ended.err, (folder / "l.db").exists()) == (2, True, False)
    assert "0-4" in run("labels", "new", "l.db", "--scale", "0-9").err


def test_tasks_warn_about_topics_and_documents_without_text(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "pool.csv").write_text("query_id,doc_id\n1,a\n1,b.txt\n9,a\n")
    run("labels", "new", "l.db", "--topics", "topics.csv", "--documents", "docs.jsonl")
    ended = run("labels", "tasks", "l.db", "pool.csv")
    assert ended.code == 0
    assert ended.err.count("warning:") == 2
    assert "'9'" in ended.err
    assert "'b.txt'" in ended.err


@pytest.mark.usefixtures("folder")
def test_status_counts_tasks_of_judges_without_labels(run: Callable[..., Ended]) -> None:
    run("labels", "new", "l.db")
    run("labels", "tasks", "l.db", "pool.csv")
    with LabelStore.open("l.db") as store:
        assert (status(store).judges, "0 tasks" in status(store).text()) == ((), False)
    run("labels", "tasks", "l.db", "pool.csv", "--judges", "ann,bob")
    with LabelStore.open("l.db") as store:
        assert [(row["judge"], row["remaining"]) for row in status(store).judges] == [("ann", 4), ("bob", 4)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "no.db"), ("judges", "no.db", "ann"), ("tasks", "no.db", "pool.csv"),
        ("import", "no.db", "gold.txt"),
        ("qrels", "no.db", "-o", "q.txt"), ("export", "no.db", "-o", "q.csv"), ("status", "topics.csv"),
        ("new", "l.db", "--topics", "no.csv"), ("new", "topics.csv"),
        ("qrels", "l.db", "--by", "eve", "-o", "q.txt"),
        ("tasks", "l.db", "pool.csv", "--judges", "ann", "--each", "2"), ("tasks", "l.db"),
        ("import", "l.db", "gold.txt"), ("export", "l.db", "-o", "l.db"), ("new", "l.db", "--scale", "binary"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_exit_code_2(
    folder: Path, run: Callable[..., Ended], arguments: tuple[str, ...]
) -> None:
    with LabelStore.open("l.db", scale="0-3") as store:
        store.add("ann", "1", "a", 2.0)
    ended = run("labels", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "Fix:" in ended.err
    assert not {"no.db", "q.txt", "q.csv"} & {path.name for path in folder.iterdir()}


def test_an_invalid_grade_is_part_of_the_message(folder: Path, run: Callable[..., Ended]) -> None:
    (folder / "labels.csv").write_text("query_id,doc_id,judge,grade\n1,a,ann,x\n")
    run("labels", "new", "l.db")
    ended = run("labels", "import", "l.db", "labels.csv")
    assert ended.code == 2
    assert "labels.csv:2" in ended.err
    assert "grade 'x'" in ended.err


@pytest.mark.usefixtures("folder")
def test_a_new_store_gets_the_top_documents_of_a_run_as_tasks(run: Callable[..., Ended]) -> None:
    Path("run.txt").write_text("".join(f"{topic} Q0 d{i} {i} {9 - i} x\n" for topic in (1, 2) for i in (1, 2, 3)))
    new = ("labels", "new", "l.db", "--topics", "topics.csv", "--tasks", "run.txt")
    assert "--depth" in run(*new).err
    assert run(*new, "--depth", "2").code == 0
    with LabelStore.open("l.db") as store:
        assert {(t.query_id, t.doc_id, t.judge) for t in store.all_tasks()} == {
            (topic, doc, "") for topic in "12" for doc in ("d1", "d2")
        }


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
@pytest.mark.parametrize(
    ("rows", "commands"),
    [
        ("judge,query,document,grade\nann,q,d,1\nbob,q,e,0\n", ["qrels"]),
        ("judge,query,document,grade\nann,q,d,1\nbob,q,d,0\n", ["quality", "qrels"]),
        (
            "query;document;ann;bob\nred shoes;d;relevant;not relevant\nred shoes;e;relevant;relevant\n",
            ["quality", "qrels"],
        ),
    ],
)
def test_check_proposes_commands_that_work(
    tmp_path: Path, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, rows: str, commands: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text(rows)
    lines = run("check", "labels.csv").out.partition("Next")[2].splitlines()
    proposed = [line.split()[1:] for line in lines if line.startswith("judged ")]
    assert [words[1] for words in proposed] == commands
    assert [run(*words).code for words in proposed] == [0] * len(commands)
