"""Storage of evaluations in an SQLite file or a PostgreSQL database. Evaluations are added, never changed."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from judged.data.arrow_files import parquet_table
from judged.data.identify import is_run
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, MissingExtraError
from judged.labels.database import add_new, open_database, without_password
from judged.results.spelling import use_one_of
from judged.scoring.default_measures import TESTED_MEASURES
from judged.scoring.evaluation.evaluate import evaluate, evaluate_without_warnings
from judged.scoring.evaluation.inputs import runs_of
from judged.scoring.evaluation.scores import Scores
from judged.scoring.evaluation.storage import of_parquet, to_parquet
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

    from judged.results.types import Table

DEFAULT_STORE = "history.db"
"""File of the history; the environment variable JUDGED_HISTORY can name another one."""
_LAST = "last"
_COMMIT = 4  # smallest number of characters of a commit in a reference


class StoredEvaluation(NamedTuple):
    """One run of a system that was scored at one time."""

    number: int
    time: str  # ISO 8601, UTC
    system: str  # name of the run
    commit: str  # of the system; empty if unknown
    tag: str  # such as "release"; often empty
    run: str  # hash of the documents
    qrels: str  # hash of the judgments
    settings: str  # measures and policies, as JSON

    @property
    def label(self) -> str:
        """Number, time, tag, and commit."""
        facts = (
            self.time[:16].replace("T", " "),
            self.tag and f"tag {self.tag}",
            self.commit and f"commit {self.commit[:10]}",
        )
        return f"#{self.number} ({', '.join(filter(None, facts))})"


@dataclass(frozen=True, eq=False)
class HistoryStore:
    """A store of evaluations: runs, judgments, and scores of topics. Open a store with `HistoryStore.open`.

    Several processes can add to it concurrently. An evaluation is durable when `add` returns.

    Examples
    --------
    >>> store = HistoryStore.open("sqlite://", new=True)  # in memory; usually a path
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    >>> for ranking in (["d1", "d2"], ["d2", "d1"]):
    ...     _ = store.add(qrels, {"bm25": {"q1": ranking, "q2": ranking}}, "RR", time="2026-03-01T02:00")
    >>> [(row.number, row.system, store.scores(row).value("RR")) for row in store.evaluations()]
    [(1, 'bm25', 0.75), (2, 'bm25', 0.75)]
    """

    engine: Engine = field(repr=False)
    where: str

    @classmethod
    def open(cls, where: str | Path | None = None, *, new: bool = False) -> Self:
        """Open a store.

        Parameters
        ----------
        where
            Path of an SQLite file, or address of a PostgreSQL database: ``postgresql://user@host/name``. Default: the
            environment variable JUDGED_HISTORY, or ``history.db``.
        new
            Whether to create a missing store.

        Raises
        ------
        InputError
            If the store cannot be opened, is missing, or is not a history.
        MissingExtraError
            If SQLAlchemy is not installed.
        """
        try:
            from judged.history import schema
        except ImportError:
            raise MissingExtraError("SQLAlchemy", "labels") from None

        where = where or os.environ.get("JUDGED_HISTORY") or DEFAULT_STORE
        engine = open_database(where, schema.LAYOUT, lambda _: None, new=new)
        return cls(engine, without_password(where))

    def add(
        self,
        qrels: Any,
        runs: Any,
        measures: Any = TESTED_MEASURES,
        *,
        time: str | datetime | None = None,
        commit: str | None = None,
        tag: str = "",
        **policies: Any,
    ) -> tuple[StoredEvaluation, ...]:
        """Score runs, and add them with their judgments and scores.

        Parameters
        ----------
        qrels, runs, measures, policies
            As for `judged.evaluate`; policies are ``dialect``, ``topics``, ``ties``, ``depth``, ``precision``,
            ``exclude_self``, and ``rel``. The name of a run is the name of the system.
        time
            Date or time of the evaluation (ISO 8601; without an offset, UTC). Default: now.
        commit
            Commit of the system. Default: that of the Git repository in the current folder, if there is one.
        tag
            Name to find this evaluation again, such as ``release``. Several evaluations can have the same tag. It
            cannot be a number or begin with ``last``.

        Raises
        ------
        InputError
            If runs and judgments cannot be evaluated, or the time or the tag is invalid.

        Warns
        -----
        JudgedWarning
            As for `judged.evaluate`.
        """
        from judged.history import schema

        judgments, systems = Qrels.of(qrels), runs_of(runs)
        if tag.startswith(_LAST) or tag.removeprefix("#").isdigit():
            raise InputError(f"the tag must not be a number or begin with 'last', got {tag!r}", fix="use another tag")
        moment, commit = _utc(time), _git_commit() if commit is None else commit
        scores = evaluate(judgments, systems, measures, **policies)
        settings = _settings(scores)
        # The order of judgments has no meaning, but that of tied documents can have one.
        table = judgments.table.sort_by([("query_id", "ascending"), ("doc_id", "ascending")])
        if "iteration" in table.column_names and len(table["iteration"].unique()) == 1:  # such as 0 in TREC files
            table = table.drop_columns(["iteration"])
        qrels_key, qrels_data = _parquet(table)
        added = {qrels_key: qrels_data}
        rows: list[dict[str, Any]] = []
        for i, run in enumerate(systems):
            key, data = _parquet(
                run.table.drop_columns(["run_id"]) if "run_id" in run.table.column_names else run.table
            )
            of_run = dataclasses.replace(
                scores, runs=scores.runs[i : i + 1], values=scores.values[i : i + 1], counted=scores.counted[i : i + 1]
            )
            added |= {key: data, _scores_key(key, qrels_key, settings): to_parquet(of_run)}
            facts = {"time": moment, "system": run.name, "commit": commit, "tag": tag}
            rows.append(facts | {"run": key, "qrels": qrels_key, "settings": settings})
        with self.engine.begin() as connection:
            add_new(connection, schema.data, ({"key": key, "parquet": data} for key, data in added.items()))
            returning = schema.evaluations.insert().returning(schema.evaluations.c.number)
            numbers = [connection.execute(returning, row).scalar_one() for row in rows]
        return tuple(StoredEvaluation(number=number, **row) for number, row in zip(numbers, rows, strict=True))

    def evaluations(self, system: str = "") -> tuple[StoredEvaluation, ...]:
        """Return the evaluations of a system, or of all systems, in order of time."""
        from judged.history import schema

        query = schema.evaluations.select().order_by("time", "number")
        with self.engine.connect() as connection:
            rows = [StoredEvaluation(**row) for row in connection.execute(query).mappings()]
        systems = list(dict.fromkeys(row.system for row in rows))
        if system and system not in systems:
            raise InputError(
                f"there are no evaluations of the system {system!r}", fix=use_one_of(systems), path=self.where
            )
        return tuple(row for row in rows if system in {"", row.system})

    def find(self, reference: str | int, system: str = "") -> StoredEvaluation:
        """Find one evaluation.

        Parameters
        ----------
        reference
            ``last``, ``last-TAG``, a number, a tag, or at least four characters of a commit, in this order. If several
            evaluations of one system match, the last one is returned. ``REFERENCE/SYSTEM`` names the system.
        system
            Name of the system. Default: any.

        Raises
        ------
        InputError
            If no evaluation matches, or evaluations of several systems match.

        Examples
        --------
        >>> store = HistoryStore.open("sqlite://", new=True)
        >>> for day, tag in enumerate(("release", ""), 1):
        ...     _ = store.add({"q": {"d": 1}}, {"bm25": {"q": ["d"]}}, time=f"2026-03-0{day}", tag=tag)
        >>> store.find("last-release").number, store.find("last").number
        (1, 2)
        """
        reference = str(reference)
        matches = self.matching(reference, system)
        if not matches and "/" in reference:
            reference, _, system = reference.partition("/")
            matches = self.matching(reference, system)
        if not matches:
            tags = ", ".join(sorted({row.tag for row in self.evaluations() if row.tag})) or "none"
            fix = f"use 'last', a number, a tag (tags: {tags}), or a commit"
            raise InputError(f"no evaluation matches {reference!r}", fix=fix, path=self.where)
        # Runs that were added together have the same time.
        latest = [row for row in matches if row.time == matches[-1].time]
        if len(systems := sorted({row.system for row in latest})) > 1:
            fix = f"add the system: {reference}/{systems[0]}"
            raise InputError(f"{reference!r} matches the systems {', '.join(systems)}", fix=fix, path=self.where)
        return matches[-1]

    def matching(self, reference: str | int, system: str = "") -> list[StoredEvaluation]:
        """Return the evaluations that a reference of `find` matches, in order of time.

        Raises
        ------
        InputError
            If the reference is the beginning of several commits.
        """
        rows, reference = self.evaluations(system), str(reference)
        tag = reference.removeprefix(f"{_LAST}-")
        by_rule = (
            list(rows) if reference == _LAST else [],
            [row for row in rows if reference.removeprefix("#") == str(row.number)],
            [row for row in rows if row.tag and row.tag == reference],
            [row for row in rows if row.tag and row.tag == tag],
            [row for row in rows if len(reference) >= _COMMIT and row.commit.startswith(reference)],
        )
        matches = next(filter(None, by_rule), [])
        if matches is by_rule[-1] and len(commits := {row.commit for row in matches}) > 1:
            fix = "write more characters"
            raise InputError(f"{reference!r} begins {len(commits)} commits", fix=fix, path=self.where)
        return matches

    def run(self, evaluation: StoredEvaluation, name: str = "") -> Run:
        """Return the documents of an evaluation as a run, by default with the name of the system."""
        return Run.of(self._table(evaluation.run), name=name or evaluation.system)

    def qrels(self, evaluation: StoredEvaluation) -> Qrels:
        """Return the judgments of an evaluation."""
        return Qrels.of(self._table(evaluation.qrels))

    def scores(self, evaluation: StoredEvaluation, like: StoredEvaluation | None = None) -> Scores:
        """Return the scores of an evaluation; with `like`, by the judgments and settings of that one.

        Scores by other judgments are computed once, and stored.
        """
        from judged.history import schema

        rules = like or evaluation
        key = _scores_key(evaluation.run, rules.qrels, rules.settings)
        data = self._data(key)
        if data is None:
            try:
                settings = json.loads(rules.settings)
                measures = list(map(parse, settings.pop("measures")))
            except (ValueError, TypeError, KeyError):
                fix = "restore the store from a copy"
                raise InputError(f"the settings of #{rules.number} are damaged", fix=fix, path=self.where) from None
            scores = evaluate_without_warnings(self.qrels(rules), self.run(evaluation), measures, **settings)
            data = to_parquet(scores)
            with self.engine.begin() as connection:
                add_new(connection, schema.data, [{"key": key, "parquet": data}])
        scores = of_parquet(Scores, parquet_table(data, self.where), self.where)
        # Systems with the same documents share their scores.
        return dataclasses.replace(scores, runs=(dataclasses.replace(scores.runs[0], name=evaluation.system),))

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _data(self, key: str) -> bytes | None:
        from sqlalchemy import select

        from judged.history import schema

        with self.engine.connect() as connection:
            return connection.scalar(select(schema.data.c.parquet).where(schema.data.c.key == key))

    def _table(self, key: str) -> Table:
        data = self._data(key)
        if data is None:
            raise InputError(f"the data {key[:12]} are missing", fix="restore the store from a copy", path=self.where)
        return parquet_table(data, self.where)


def read_run(reference: str | Path) -> Run:
    """Return the run of ``EVALUATION`` or ``EVALUATION/SYSTEM`` of the default store, for paths ``history:...``."""
    store = HistoryStore.open()
    evaluation = store.find(str(reference))
    return store.run(evaluation, f"{evaluation.system} #{evaluation.number}")


def read_folder(folder: str | Path) -> tuple[str, list[str]]:
    """Return the paths of the judgments and of the runs in a folder.

    Raises
    ------
    InputError
        If the folder does not have one file of judgments and at least one run.
    """
    kinds: Mapping[str, list[str]] = {"qrels": [], "run": []}
    for file in sorted(Path(folder).iterdir()):
        if file.is_file() and not file.name.startswith("."):
            kinds.get(_kind_of(file), []).append(str(file))
    qrels, runs = kinds["qrels"], kinds["run"]
    if len(qrels) != 1 or not runs:
        problem = f"the folder must have one file of judgments and at least one run, got {len(qrels)} and {len(runs)}"
        raise InputError(problem, fix="name the files: judged history add QRELS RUN...", path=str(folder))
    return qrels[0], runs


def _kind_of(file: Path) -> str:
    if is_run(file):
        return "run"
    try:
        Qrels.read(file)
    except InputError:
        return ""
    return "qrels"


def _settings(scores: Scores) -> str:
    return json.dumps({"measures": list(scores.measure_names), **dataclasses.asdict(scores.policies)})


def _scores_key(run: str, qrels: str, settings: str) -> str:
    return sha256(f"{run} {qrels} {settings}".encode()).hexdigest()


def _parquet(table: Table) -> tuple[str, bytes]:
    """Return a table as Parquet, and the hash of its values."""
    from pyarrow import parquet  # slow to import

    target, values = pa.BufferOutputStream(), pa.BufferOutputStream()
    parquet.write_table(table, target, compression="zstd")
    with pa.ipc.new_stream(values, table.schema.remove_metadata()) as writer:
        writer.write_table(table.combine_chunks().replace_schema_metadata(None))
    return sha256(values.getvalue()).hexdigest(), target.getvalue().to_pybytes()


def _utc(time: str | datetime | None) -> str:
    """Return a time in UTC with seconds.

    >>> _utc("2026-03-01"), _utc("2026-03-01T02:00+02:00")
    ('2026-03-01T00:00:00', '2026-03-01T00:00:00')
    """
    try:
        moment = datetime.now(UTC) if time is None else datetime.fromisoformat(str(time))
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InputError(f"the time must be ISO 8601, got {time!r}", fix="write 2026-03-01T02:00") from None
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def _git_commit() -> str:
    try:
        command = ["git", "rev-parse", "HEAD"]
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
        return result.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
