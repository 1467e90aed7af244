"""Commands, their input files, and the files that each may leave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from every_command import write_files
from judged.data import sample

SOURCE = Path(__file__).parents[2] / "src"
_RUNS = ("old.run", "new.run", "other.run")
_MODEL = ("--endpoint", "endpoint.toml", "--yes")
_LOG = str(sample.LOG)
_QRELS, _QUERIES, _DOCUMENTS = (str(sample.FOLDER / name) for name in ("qrels.txt", "queries.jsonl", "docs.jsonl.gz"))
_SAMPLE_RUNS = tuple(str(path) for path in sorted((sample.FOLDER / "runs").glob("*.run.gz"))[:3])


@dataclass(frozen=True)
class Command:
    """Command that writes into the folder ``{out}``, and starts in the folder of its input files.

    Attributes
    ----------
    unit
        Unit of atomic replacement: the ``folder``, or each of its ``files``.
    rows
        Unit of atomic insertion into a store: the ``store``, each ``table``, or each ``row``.
    old
        Earlier content of the folder: input files or folders by their names in it. If None, each file that the command
        writes has arbitrary bytes.
    empty, full
        Whether the command also runs in an empty folder, and in a folder with earlier content.
    adds
        Whether each run adds rows, even if an earlier run added the same rows.
    timed
        Whether the content differs between runs, such as measured times. It must be complete.
    """

    name: str
    arguments: tuple[str, ...]
    unit: str = "files"
    rows: str = "store"
    old: dict[str, str] | None = None
    empty: bool = True
    full: bool = True
    timed: bool = False
    stdin: str = ""
    adds: bool = False
    codes: tuple[int, ...] = (0,)
    volatile: tuple[str, ...] = field(default=())  # columns of a store that differ from one run to the next

    @property
    def starts(self) -> tuple[str, ...]:
        return ("empty",) * self.empty + ("old",) * self.full


def _file(name: str, arguments: tuple[str, ...], file: str, *more: str, option: str = "-o", **how: object) -> Command:
    return Command(
        name, (*name.split(" (", maxsplit=1)[0].split(), *arguments, option, f"{{out}}/{file}", *more), **how
    )  # type: ignore[arg-type]


def _store(name: str, store: str, *arguments: str, **how: object) -> Command:
    old = {store: str(how.pop("start", store))}
    words = tuple(name.split(" (", maxsplit=1)[0].split())
    return Command(name, (*words, f"{{out}}/{store}", *arguments), old=old, **how)  # type: ignore[arg-type]


_AT = ("time", "token", "secret")
COMMANDS = (
    _file("evaluate", (_QRELS, *_SAMPLE_RUNS), "scores.parquet"),
    _file("explain", ("qrels.txt", "old.run", "-t", "q1", "-m", "nDCG@5"), "explained.html"),
    _file("curve", (_QRELS, *_SAMPLE_RUNS), "curve.svg"),
    _file("compare", (_QRELS, *_SAMPLE_RUNS), "compared.json"),
    _file("power", (_QRELS, *_SAMPLE_RUNS), "power.json"),
    _file("fuse", _SAMPLE_RUNS, "fused.run", option="--to"),
    _file("slices", (_QRELS, *_SAMPLE_RUNS, "--queries", _QUERIES, "--by", "length"), "slices.csv"),
    _file("matrix", (_QRELS, *_SAMPLE_RUNS), "matrix.html"),
    _file("diff", (_QRELS, *_SAMPLE_RUNS[:2]), "diff.md"),
    _file("review", (_QRELS, *_SAMPLE_RUNS), "review.csv"),
    _file("traces funnel", ("qrels.txt", "traces.jsonl"), "funnel.json"),
    Command("traces runs", ("traces", "runs", "traces.jsonl", "--to", "{out}/stages")),
    _file(
        "gate", ("qrels.txt", "old.run", "new.run"), "gate.json", "--junit", "{out}/gate.xml", option="--json",
        codes=(0, 1),
    ),
    _file("gate init", (_QRELS, _SAMPLE_RUNS[0], "--force"), "gate.toml"),
    _file(
        "change review", ("qrels.txt", "old.run", "new.run", "--costs", "costs.csv", "--cost", "milliseconds"),
        "change.html", codes=(0, 1),
    ),
    _file("report", (_QRELS, *_SAMPLE_RUNS, "--charts", "{out}/charts"), "report.html"),
    _file("pool", _SAMPLE_RUNS, "pool.csv"),
    _file("collection check", (_QRELS, *_SAMPLE_RUNS), "collection.json", codes=(0, 1)),
    _file("labels next", (_QRELS, *_SAMPLE_RUNS[:2]), "next.csv"),
    _file("labels qrels", ("many.db",), "made.txt"),
    _file("labels export", ("many.db",), "labels.csv"),
    _store("labels new", "labels.db", "--topics", _QUERIES, "--documents", _DOCUMENTS, rows="table"),
    _store("labels import", "labels.db", "many.csv", empty=False, adds=True),
    _store("labels tasks", "labels.db", "many.csv", "--judges", "ann,bob", "--overlap", "0.2", empty=False),
    _store("labels judges", "labels.db", *(f"judge{n}" for n in range(30)), empty=False, rows="row", volatile=_AT),
    _store("labels ask", "asked.db", *_MODEL, empty=False, rows="row", volatile=_AT),
    _file("online metrics", (_LOG,), "metrics.json"),
    _file("online metrics (standard input)", ("-",), "metrics.json", stdin="log.ndjson"),
    _file("online queries", (_LOG,), "queries.csv"),
    Command(
        "logs convert", ("logs", "convert", _LOG, "--to", "{out}/log"), unit="folder", old={"log": "converted"},
    ),
    _file("logs draft", ("log.csv",), "mapping.toml"),
    _file("clicks judge", ("swapped.jsonl", "--topics", "queries.jsonl", "--min-shown", "1"), "judgments.csv"),
    Command(
        "watch", ("watch", "{out}/watch.toml", "--prometheus", "{out}/watch.prom"), codes=(0, 1), empty=False,
        old={"watch.toml": "watched.toml", "watch.json": "watched.json", "series.csv": "review.csv"},
    ),
    Command("watch (init)", ("watch", "{out}/watch.toml", _LOG, "--init", "--force")),
    Command("demo", ("demo", "--to", "{out}/sample"), unit="folder", full=False),
    Command(
        "experiment run", ("experiment", "run", "plan.toml", "--to", "{out}/results", "--resamples", "1000"),
        timed=True, old={"results": "half"},
    ),
    Command("rag nuggets", ("rag", "nuggets", "{out}/bare", "--queries", "queries.jsonl", "--texts", "docs.jsonl",
            "--qrels", "qrels.txt", *_MODEL), old={"bare": "bare"}, empty=False, volatile=_AT, rows="row"),
    Command("rag support", ("rag", "support", "answers", "--into", "{out}/into", "--store", "{out}/asked.db", *_MODEL),
            old={"asked.db": "answers/asked.db"}, empty=False, volatile=_AT, rows="row"),
    Command("study links", ("study", "links", "study.toml", "--store", "{out}/study.db"), old={"study.db": "study.db"},
            rows="table", volatile=_AT),
    Command("study export", ("study", "export", "filled.db", "-o", "{out}/recorded")),
    Command("study init", ("study", "init", "{out}/study.toml", "--force")),
)  # fmt: skip


def environment(temporary: Path) -> dict[str, str]:
    """Return the variables of a process whose temporary files go to a folder."""
    return {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "TMPDIR": str(temporary),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def command_line(command: Command, out: Path) -> list[str]:
    """Return the command line with its folder."""
    return [sys.executable, "-m", "judged", *(part.replace("{out}", str(out)) for part in command.arguments)]


def write_inputs(folder: Path) -> None:
    """Write all input files."""
    write_files(folder)
    _write_labels(folder)
    _write_log(folder)
    _write_watch(folder)
    plan = (folder / "experiment.toml").read_text().replace("[factors]", "rounds = 2\n[factors]")
    (folder / "plan.toml").write_text(plan)
    plan = plan.replace('stemmer = ["none", "english"]', 'stemmer = ["none"]')
    (folder / "half.toml").write_text(plan)
    for words in (
        ("logs", "convert", "log.jsonl", "--to", "converted"),
        ("experiment", "run", "half.toml", "--to", "half"),
        ("study", "links", "study.toml", "--store", "filled.db"),
    ):
        subprocess.run(
            [sys.executable, "-m", "judged", *words], cwd=folder, env=environment(folder), check=True,
            capture_output=True,
        )  # fmt: skip


def _write_labels(folder: Path) -> None:
    rows = [f"q{1 + n % 12},d{n},{judge},{n % 4}" for n in range(6000) for judge in ("ann", "bob")]
    (folder / "many.csv").write_text("\n".join(["query_id,doc_id,judge,grade", *rows]) + "\n")
    shutil.copy(folder / "labels.db", folder / "many.db")
    from judged.labels import LabelStore, import_labels

    with LabelStore.open(folder / "many.db") as store:
        import_labels(store, folder / "many.csv")


def _write_log(folder: Path) -> None:
    import gzip

    (folder / "log.ndjson").write_bytes(gzip.decompress(sample.LOG.read_bytes()))
    rows = "".join(f"{n % 90},2026-01-05T10:{n % 60:02}:00Z,words of {n % 7},d{n % 5}|d{n % 3}\n" for n in range(3000))
    (folder / "log.csv").write_text(f"sid,ts,search_term,urls\n{rows}")


def _write_watch(folder: Path) -> None:
    text = (folder / "watch.toml").read_text().replace("review.csv", "series.csv")
    (folder / "watched.toml").write_text(text.replace("[watch]\n", '[watch]\nstate = "watch.json"\n'))
    points = [["bad", "", f"2026-02-{day:02}", 0.1, 0.03, 10.0, 100.0] for day in range(1, 29)]
    (folder / "watched.json").write_text(json.dumps({"watch": 1, "points": points}))
