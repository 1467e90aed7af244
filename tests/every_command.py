"""Every command of `judged`, with arguments that let it do its job on small files."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli.main import app
from judged.history import HistoryStore
from judged.labels import LabelStore, import_labels
from judged.pipelines.experiments import run
from judged.studies import first_design
from judged.studies.commands import hash_of
from judged.studies.storage import StudyStore
from studies_made import records as study_records

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOPICS = range(1, 13)
_RUNS = ("old.run", "new.run", "other.run")
_MODEL = ("--endpoint", "endpoint.toml", "--yes")
_GRADES = {(q, d): (q * d) % 4 for q in _TOPICS for d in range(1, 9)}
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "evaluate": ("qrels.txt", *_RUNS),
    "explain": ("qrels.txt", "old.run", "-t", "q1", "-m", "nDCG@5"),
    "curve": ("qrels.txt", *_RUNS),
    "measures": (),
    "plugins": (),
    "advise": ("qrels.txt", *_RUNS),
    "compare": ("qrels.txt", *_RUNS),
    "power": ("qrels.txt", *_RUNS),
    "agree": ("qrels.txt", "second=second.txt"),
    "fuse": (*_RUNS, "--qrels", "qrels.txt", "--steps", "4", "--folds", "3"),
    "experiment plan": ("experiment.toml",),
    "experiment run": ("experiment.toml", "--to", "results", "--resamples", "1000"),
    "experiment show": ("results", "--resamples", "1000"),
    "slices": ("qrels.txt", *_RUNS, "--queries", "queries.jsonl", "--by", "kind", "--min-topics", "3"),
    "matrix": ("qrels.txt", *_RUNS),
    "stages": ("qrels.txt", "old.run", "new.run"),
    "disagree": ("qrels.txt", *_RUNS, "-m", "nDCG@5", "-m", "AP"),
    "needs": ("qrels.txt", *_RUNS, "--needs", "needs.csv"),
    "diff": ("qrels.txt", "old.run", "new.run"),
    "review": ("qrels.txt", *_RUNS),
    "tradeoff": ("qrels.txt", *_RUNS, "--costs", "costs.csv"),
    "traces check": ("traces.jsonl",),
    "traces funnel": ("qrels.txt", "traces.jsonl"),
    "traces failures": ("qrels.txt", "traces.jsonl"),
    "traces gaps": ("qrels.txt", "traces.jsonl", "--by", "kind", "--attributes", "queries.jsonl"),
    "traces diff": ("qrels.txt", "traces.jsonl", "traces.jsonl"),
    "traces explain": ("traces.jsonl", "-t", "q1"),
    "trajectories check": ("trajectories.jsonl",),
    "trajectories evaluate": (
        "trajectories.jsonl",
        "--qrels",
        "qrels.txt",
        "--attributes",
        "queries.jsonl",
        "--by",
        "kind",
    ),
    "trajectories compare": ("trajectories.jsonl", "--qrels", "qrels.txt", "-m", "AnswerAccuracy", "-m", "SeenR"),
    "trajectories gate": ("old=trajectories.jsonl", "new=trajectories.jsonl", "-m", "NumSearches", "--margin", "1"),
    "trajectories where": ("trajectories.jsonl", "--qrels", "qrels.txt"),
    "trajectories explain": ("trajectories.jsonl", "-t", "q1", "--qrels", "qrels.txt", "-m", "SeenR"),
    "trajectories confidence": ("trajectories.jsonl",),
    "trajectories plan": ("trajectories.jsonl",),
    "trajectories conversations": ("qrels.txt", *_RUNS, "--turns", "turns.csv"),
    "traces runs": ("--stage", "first=old.run", "--stage", "last=new.run", "--to", "stages"),
    "labels ask": ("asked.db", "--endpoint", "endpoint.toml", "--yes"),
    "labels questions": ("asked.db", "docs.jsonl", "--endpoint", "endpoint.toml", "--limit", "2", "--yes"),
    "rag nuggets": ("bare", "--queries", "queries.jsonl", "--texts", "docs.jsonl", "--qrels", "qrels.txt", *_MODEL),
    "rag assign": ("answers", "--queries", "queries.jsonl", *_MODEL),
    "rag support": ("answers", *_MODEL),
    "rag correctness": ("answers", "--queries", "queries.jsonl", *_MODEL),
    "rag calibrate": ("answers", "--people", "ann"),
    "gate": ("qrels.txt", "old.run", "new.run"),
    "gate init": ("qrels.txt", "old.run", "-o", "-"),
    "report": ("qrels.txt", *_RUNS),
    "history add": ("qrels.txt", "old.run", "--history", "new.db", "-m", "nDCG@5"),
    "history show": ("--history", "history.db"),
    "history plot": ("--history", "history.db"),
    "history bisect": ("--history", "history.db"),
    "history compare": ("1", "last", "--history", "history.db"),
    "collection check": ("qrels.txt", *_RUNS),
    "labels next": ("qrels.txt", "old.run", "new.run"),
    "online dwell": ("log.jsonl",),
    "online list": (),
    "online metrics": ("log.jsonl",),
    "online ranks": ("log.jsonl",),
    "online time": ("log.jsonl", "-m", "PageCTR"),
    "online overview": ("log.jsonl",),
    "online queries": ("log.jsonl",),
    "online funnel": ("log.jsonl",),
    "online difference": ("log.jsonl",),
    "online abtest": ("log.jsonl", "--plan"),
    "online interleaving": ("log.jsonl", "--plan"),
    "online offline": ("log.jsonl", "qrels.txt", "--topics", "queries.jsonl"),
    "clicks propensities": ("swapped.jsonl",),
    "clicks coec": ("swapped.jsonl",),
    "clicks ips": ("swapped.jsonl", *_RUNS, "--propensities", "propensities.csv", "--topics", "queries.jsonl"),
    "clicks off-policy": ("propensities.jsonl", "other.csv", "--depth", "2"),
    "clicks judge": ("swapped.jsonl", "--topics", "queries.jsonl", "--min-shown", "1"),
    "clicks evaluate": ("judgments.csv", *_RUNS),
    "clicks against": ("swapped.jsonl", "qrels.txt", "--topics", "queries.jsonl", "--min-shown", "1"),
    "labels topics": ("asked.csv", "-n", "3"),
    "labels estimate": ("pool.csv", "qrels.txt", *_RUNS),
    "rag evaluate": ("responses", "--attributes", "queries.jsonl", "--by", "kind"),
    "rag explain": ("old=responses", "-t", "q1", "-m", "NuggetRecall"),
    "rag gate": ("old=responses", "new=responses", "--qrels", "qrels.txt", "-m", "NuggetRecall,R@5", "--margin", "0.5"),
    "pool": (*_RUNS, "--sample", "100"),
    "logs check": ("log.jsonl",),
    "logs convert": ("log.jsonl", "--to", "converted"),
    "logs draft": ("log.jsonl",),
    "clicks models": ("log.jsonl", "-m", "RCTR", "-m", "DBN", "--folds", "2"),
    "clicks fit": ("log.jsonl", "-m", "SDBN"),
    "labels quality": ("labels.csv", "old.run", "--gold", "qrels.txt"),
    "labels calibrate": ("qrels.txt", "old.run", "new.run", "--judge", "model=second.txt"),
    "labels new": ("new.db", "--topics", "queries.jsonl", "--documents", "docs.jsonl"),
    "labels judges": ("labels.db", "bob"),
    "labels tasks": ("labels.db", "second.txt", "--judges", "ann,bob", "--overlap", "0.2", "--gold", "qrels.txt"),
    "rag check": ("responses", "--qrels", "qrels.txt"),
    "rag waterfall": ("responses", "--qrels", "qrels.txt", "--run", "old.run"),
    "labels status": ("labels.db",),
    "labels import": ("labels.db", "second.txt", "--judge", "bob"),
    "labels qrels": ("labels.db", "-o", "made.txt"),
    "labels export": ("labels.db", "-o", "made.csv"),
    "change rollback": ("qrels.txt", "old.run", "new.run", "--gate", "gate.toml"),
    "change review": ("qrels.txt", "old.run", "new.run", "--costs", "costs.csv", "--cost", "milliseconds"),
    "watch": ("watch.toml", "--no-keep"),
    "study links": ("study.toml", "--store", "study.db"),
    "study run": ("study.toml", "--store", "study.db", "--port", "0"),
    "study export": ("study.db", "-o", "recorded"),
    "study report": ("study", "--outcome", "satisfaction"),
    "study init": ("first.toml",),
    "study check": ("study.toml",),
    "study plan": ("study.toml", "--difference", "0.5"),
    "serve": ("--port", "0"),
    "check": ("qrels.txt", "old.run"),
    "convert": ("old.run", "-o", "converted.csv"),
    "leave-one-out": ("qrels.txt", *_RUNS),
    "trec_eval": ("qrels.txt", "old.run"),
    "demo": (),
}


def write_files(folder: Path) -> None:
    """Write the files that the arguments name. They are created once per process, and copied afterwards."""
    shutil.copytree(_written(), folder, dirs_exist_ok=True)


@cache
def _written() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write_collection(folder)
    lines = [f"q{q} 0 d{d} {grade if q * d % 7 != 5 else 1}" for (q, d), grade in _GRADES.items()]
    (folder / "second.txt").write_text("\n".join(lines) + "\n")
    for shift, name in enumerate(_RUNS):
        lines = [f"q{q} Q0 d{d} 0 {-(d * (q + shift) % 11)} {name[:-4]}" for q in _TOPICS for d in range(1, 11)]
        (folder / name).write_text("\n".join(lines) + "\n")
    _write_responses(folder / "responses")
    (folder / "needs.csv").write_text("query_id,need\n" + "".join(f"q{q},n{q // 3}\n" for q in _TOPICS))
    (folder / "costs.csv").write_text("run,milliseconds\nold,3\nnew,4\nother,5\n")
    labels = [f"q{q},d{d},{judge},{grade}" for (q, d), grade in _GRADES.items() for judge in ("ann", "bob")]
    (folder / "labels.csv").write_text("\n".join(["query_id,doc_id,judge,grade", *labels]) + "\n")
    (folder / "asked.csv").write_text("query,count\n" + "".join(f"words of {q},{q * q}\n" for q in _TOPICS))
    rows = "".join(f"q{q},d{d},1-10,0.5,1,3\n" for q in _TOPICS for d in range(1, 5))
    (folder / "pool.csv").write_text(f"query_id,doc_id,stratum,probability,best_rank,runs\n{rows}")
    (folder / "gate.toml").write_text('[[check]]\nmeasure = "nDCG@5"\nmargin = 0.5\n')
    stages = [{"query_id": f"q{q}", "stage": "bm25", "documents": [f"d{d}" for d in range(1, 9)]} for q in _TOPICS]
    stages += [
        stage | {"stage": "shown", "kind": "shown", "parents": ["bm25"], "documents": stage["documents"][::-2]}
        for stage in stages
    ]
    (folder / "traces.jsonl").write_text("".join(f"{json.dumps(stage)}\n" for stage in stages))
    trials = [_trial(q, run, trial) for run in ("old", "new") for q in _TOPICS for trial in (1, 2)]
    turns = "".join(f"q{q},c{q % 4},{1 + q // 4}\n" for q in _TOPICS)
    (folder / "turns.csv").write_text(f"query_id,conversation,turn\n{turns}")
    (folder / "trajectories.jsonl").write_text("".join(f"{json.dumps(trial)}\n" for trial in trials))
    history = HistoryStore.open(folder / "history.db", new=True)
    for day in range(1, 13):
        history.add(folder / "qrels.txt", {"s": folder / _RUNS[day > 9]}, "nDCG@5", time=f"2026-03-{day:02}", commit="")
    history.close()
    shutil.copytree(_experiment(), folder / "results")
    store = LabelStore.open(folder / "labels.db")
    store.add_topics(folder / "queries.jsonl")
    import_labels(store, folder / "qrels.txt", judge="ann")
    store.close()
    shutil.copy(_store_with_replies(), folder / "asked.db")
    for name, nuggets in (("answers", True), ("bare", False)):
        shutil.copytree(_answers_with_replies(nuggets), folder / name)
    (folder / "endpoint.toml").write_text('base_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nretries = 0\n')
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(record)}\n" for i in range(24) for record in _visit(i)))
    swapped = [record for i in range(36) for record in _visit(i, swapped=i < 12)]
    (folder / "swapped.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in swapped))
    days = "".join(f"2026-03-{1 + i:02},{10 + i % 3},100\n" for i in range(31))
    (folder / "review.csv").write_text(f"date,numerator,denominator\n{days}")
    watched = "[watch]\nbaseline_from = 2026-03-01\nbaseline_to = 2026-03-20\n"
    (folder / "watch.toml").write_text(f'{watched}[[series]]\nname = "bad"\ntable = "review.csv"\nbetter = "less"\n')
    (folder / "study.toml").write_text(first_design("study.toml"))
    study_records(people=6, topics=4).write(folder / "study")
    StudyStore.open(folder / "study.db", hash_of(str(folder / "study.toml")), new=True).close()
    records = [
        {
            **event,
            "query_attributes": {"propensities": [0.5, 0.5], "propensity_convention": "marginal"},
        }
        if "user_query" in event
        else event
        for i in range(60)
        for event in _visit(i, swapped=bool(i % 2))
        if i % 3 or "user_query" in event  # a third of the users do not click: the number of clicks varies
    ]
    (folder / "propensities.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (folder / "other.csv").write_text("rank,doc_id,probability\n1,d1,0.5\n1,d2,0.5\n2,d1,0.5\n2,d2,0.5\n")
    (folder / "propensities.csv").write_text("rank,value\n1,1\n2,0.5\n")
    measured = [f"q{q},d{d},{grade},{grade},0.25" for (q, d), grade in _GRADES.items()]
    (folder / "judgments.csv").write_text("\n".join(["query_id,doc_id,grade,value,se", *measured]) + "\n")
    return folder


def _write_responses(folder: Path) -> None:
    """Write the answers of two systems, with their verdicts."""
    folder.mkdir()
    pairs = [(f"q{q}", run) for q in _TOPICS for run in ("old", "new")]
    verdicts = {topic: "support" if i % 3 else "not" for i, (topic, _) in enumerate(pairs)}
    tables = {
        "answers": [(topic, run, "It is so.") for topic, run in pairs],
        "nuggets": [(f"q{q}", "n", "it is so") for q in _TOPICS],
        "context": [(topic, run, f"d{d}") for topic, run in pairs for d in (1, 2, 3)],
        "citations": [(topic, run, 1, "d1") for topic, run in pairs],
        "support": [(topic, run, 1, "d1", verdicts[topic]) for topic, run in pairs],
        "assignments": [(topic, run, "n", verdicts[topic]) for topic, run in pairs],
    }
    columns = {
        "answers": "query_id,run_id,text",
        "nuggets": "query_id,nugget_id,text",
        "context": "query_id,run_id,doc_id",
        "citations": "query_id,run_id,sentence,doc_id",
        "support": "query_id,run_id,sentence,doc_id,verdict",
        "assignments": "query_id,run_id,nugget_id,verdict",
    }
    for name, rows in tables.items():
        lines = [columns[name], *(",".join(map(str, row)) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


_PLAN = """
documents = "docs.jsonl"
queries = "queries.jsonl"
qrels = "qrels.txt"
measures = ["nDCG@5"]
[factors]
engine = ["sqlite"]
stemmer = ["none", "english"]
"""


@cache
def _experiment() -> Path:
    """Return the results of the plan, which runs once, because results do not depend on the folder of its files."""
    place = Path(tempfile.mkdtemp(prefix="experiment"))
    atexit.register(shutil.rmtree, place)
    _write_collection(place)
    run(place / "experiment.toml", place / "results")
    return place / "results"


@cache
def _store_with_replies() -> Path:
    """Return a store with all replies of a model, so that no request is sent."""
    from judged.labels import LabelStore, NewTask
    from judged.labels.asking import Endpoint, prepare, prepare_questions
    from judged.labels.asking.asking import save_reply
    from judged.labels.asking.client import Reply

    place = Path(tempfile.mkdtemp(prefix="asked"))
    atexit.register(shutil.rmtree, place)
    _write_collection(place)
    store, endpoint = LabelStore.open(place / "asked.db"), Endpoint("http://127.0.0.1:9/v1", "m")
    store.add_topics({"q1": "words"})
    store.add_documents(str(place / "docs.jsonl"))
    store.add_tasks([NewTask("q1", "d1"), NewTask("q1", "d2")])
    for reply, prepared in (
        ("1", prepare(store, endpoint)),
        ("NONE", prepare_questions(store, endpoint, str(place / "docs.jsonl"), limit=2)),
    ):
        for key in prepared.requests:
            save_reply(store, key, Reply(reply))
    store.close()
    return place / "asked.db"


@cache
def _answers_with_replies(nuggets: bool) -> Path:
    """Return answers of systems and a store with all replies of a model, so that no request is sent."""
    from judged.labels.asking import Endpoint
    from judged.labels.asking.asking import save_reply
    from judged.labels.asking.client import Reply
    from judged.pipelines.rag import filling
    from judged.pipelines.rag.readers import read_responses

    path = Path(tempfile.mkdtemp(prefix="answered"))
    atexit.register(shutil.rmtree, path)
    _write_collection(path)
    tables: dict[str, list[dict[str, object]]] = {"answers": [{"text": "words 1"}]}
    if nuggets:
        judged_by = [{"nugget_id": "1", "judge": judge, "verdict": "support"} for judge in ("ann", "other")]
        tables |= {
            "sentences": [{"sentence": 1, "text": "words 1"}], "citations": [{"sentence": 1, "doc_id": "d1"}],
            "context": [{"doc_id": "d1", "text": "of words 1"}], "references": [{"text": "words"}],
            "nuggets": [{"nugget_id": "1", "text": "words", "importance": "vital"}], "assignments": judged_by,
        }  # fmt: skip
    for name, rows in tables.items():
        lines = [json.dumps({"query_id": f"q{q}", **row}) for q in _TOPICS for row in rows]
        (path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    responses, model = read_responses(path), Endpoint("http://127.0.0.1:9/v1", "m")
    options = {"store": str(path / "asked.db"), "queries": str(path / "queries.jsonl")}
    if nuggets:
        names = ("assignments", "correctness", "support")
        prepared_tables = [filling.prepare_table(name, responses, model, **options) for name in names]
    else:
        texts, qrels = str(path / "docs.jsonl"), str(path / "qrels.txt")
        prepared_tables = [filling.prepare_table("nuggets", responses, model, qrels=qrels, texts=texts, **options)]
    for prepared in prepared_tables:
        for key in prepared.requests:
            save_reply(prepared.store, key, Reply("support"))
        prepared.store.close()
    return path


def _write_collection(folder: Path) -> None:
    """Write documents, queries, judgments, and a plan over them."""
    lines = [f"q{q} 0 d{d} {grade if q * d % 7 else 1}" for (q, d), grade in _GRADES.items()]
    (folder / "qrels.txt").write_text("\n".join(lines) + "\n")
    queries = [{"query_id": f"q{q}", "text": f"words of {q}", "kind": "ab"[q % 2]} for q in _TOPICS]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)) + "\n")
    documents = [{"doc_id": f"d{d}", "text": f"{'of ' * d}words {d}"} for d in range(1, 11)]
    (folder / "docs.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n")
    (folder / "experiment.toml").write_text(_PLAN)


def _trial(q: int, run: str, trial: int) -> dict[str, object]:
    """Return a trial of an agent with two searches; the answer of every third trial is right."""
    searches = [{"kind": "search", "query": f"words {i}", "documents": [f"d{(q + i) % 9}"]} for i in range(trial, 3)]
    opened = {"kind": "open", "documents": searches[0]["documents"]}
    is_right = (q + trial + len(run) * (run == "old")) % 3 == 0
    facts = {"answer": "It is so.", "citations": opened["documents"], "confidence": 0.5 + q % 5 / 10, "tokens": 10 * q}
    ids = {"query_id": f"q{q}", "run_id": run, "trial": trial}
    return ids | facts | {"correct": is_right, "steps": [*searches, opened]}


def _visit(i: int, *, swapped: bool = False) -> tuple[dict[str, object], ...]:
    """Return a page with a click and a later page. With `swapped`, the click is on the other result, at rank 2."""
    start = f"2026-01-0{1 + i % 7}T10:{i:02}"
    user_fields = {"client_id": f"u{i}", "user_query": f"words of {1 + i % 12}"}
    page = {
        **user_fields,
        "query_id": f"p{i}",
        "timestamp": f"{start}:00Z",
        "query_response_hit_ids": ["d2", "d1"] if swapped else ["d1", "d2"],
    }
    return (
        page,
        {"action_name": "click", "query_id": f"p{i}", "client_id": f"u{i}", "timestamp": f"{start}:10Z",
         "event_attributes": {"object": {"object_id": "d1"}, "position": {"ordinal": 1 + swapped}}},
        {**page, "query_id": f"s{i}", "timestamp": f"{start}:50Z"},
    )  # fmt: skip


def commands(group: click.Group = app, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Name every command that does something."""
    from judged.interface.commands.gate import init

    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        elif command is not None:
            yield f"{above}{name}", command
    if not above:
        yield "gate init", init


def forms(command: click.Command) -> tuple[str, ...]:
    """Name the forms that a command can print."""
    options = [option for option in command.params if option.name == "form"]
    return tuple(options[0].type.choices) if options and isinstance(options[0].type, click.Choice) else ()
