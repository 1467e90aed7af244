"""Overview of trajectories: numbers of trials, and of steps by kind and tool."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from judged.data.compute import pc
from judged.pipelines.trajectories.trajectories import COMPLETED
from judged.results import COUNT, TEXT, Answer, Column, Table, counted, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.pipelines.trajectories.trajectories import Trajectories
    from judged.results import Block
    from judged.results.blocks import Note


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoriesCheck(Answer):
    """Numbers of trials and steps, and missing records.

    Parameters
    ----------
    trajectories
        The trajectories.
    notes
        Records that were skipped or completed when reading.
    """

    kind: ClassVar[str] = "trajectories-check"

    trajectories: Trajectories
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Numbers of trials and questions."""
        trials, questions = self.trajectories["trials"].num_rows, len(self.trajectories.query_ids)
        return f"{counted(trials, 'trial')} of {counted(questions, 'question')}"

    def facts(self) -> Mapping[str, Any]:
        """Return the numbers of questions and trials."""
        return {"n": len(self.trajectories.query_ids), "trials": self.trajectories["trials"].num_rows}

    def blocks(self) -> tuple[Block, ...]:
        """Return one row for each system, and one for each kind of step and tool."""
        return (self._systems(), self._steps())

    def _systems(self) -> Table:
        names, trials, steps = self.trajectories.run_names, self.trajectories["trials"], self.trajectories["steps"]
        of_run = [trials.filter(pc.equal(trials["run_id"], name)) for name in names]
        sizes = [rows.num_rows for rows in of_run]
        searched = Counter(steps.filter(pc.equal(steps["kind"], "search"))["run_id"].to_pylist())
        cited = self.trajectories["citations"].group_by(["query_id", "run_id", "trial"]).aggregate([])
        citing = Counter(cited["run_id"].to_pylist())
        searches = [searched[name] / size for name, size in zip(names, sizes, strict=True)]
        columns = (
            Column("system", list(names), TEXT),
            Column("n", [len(rows["query_id"].unique()) for rows in of_run], COUNT, "questions"),
            Column("trials", sizes, COUNT),
            Column("completed", [rows["status"].to_pylist().count(COMPLETED) for rows in of_run], COUNT),
            Column("answers", [len(rows["answer"].drop_null()) for rows in of_run], COUNT, "with answer"),
            Column("citing", [citing[name] for name in names], COUNT, "with citations"),
            Column("confident", [len(rows["confidence"].drop_null()) for rows in of_run], COUNT, "with confidence"),
            Column("searches", searches, number(2), "searches per trial"),
        )
        return Table("systems", columns, self.title, labels=1)

    def _steps(self) -> Table:
        steps = self.trajectories["steps"]
        lengths = pc.list_value_length(steps["documents"])
        has_documents = pc.is_in(steps["kind"], value_set=pa.array(["search", "open"]))
        is_unrecorded = pc.and_(pc.and_(pc.is_null(lengths), pc.invert(steps["failed"])), has_documents)
        values = {"failed": pc.cast(steps["failed"], "int64"), "unrecorded": pc.cast(is_unrecorded, "int64")}
        table = pa.table({name: steps[name] for name in ("run_id", "kind", "tool")} | values | {"documents": lengths})
        groups = table.group_by(["run_id", "kind", "tool"], use_threads=False)
        sums = [([], "count_all"), ("failed", "sum"), ("unrecorded", "sum"), ("documents", "mean")]
        counts = groups.aggregate(sums).sort_by([("run_id", "ascending"), ("count_all", "descending")])
        columns = (
            Column("system", counts["run_id"].to_pylist(), TEXT),
            Column("kind", counts["kind"].to_pylist(), TEXT),
            Column("tool", [tool or "" for tool in counts["tool"].to_pylist()], TEXT),
            Column("steps", counts["count_all"].to_pylist(), COUNT),
            Column("failed", counts["failed_sum"].to_pylist(), COUNT),
            Column("unrecorded", counts["unrecorded_sum"].to_pylist(), COUNT, "not recorded"),
            Column("documents", counts["documents_mean"].to_pylist(), number(1), "documents per step"),
        )
        note = "not recorded: searches and opened documents that did not fail, without a list of documents"
        return Table("steps", columns, "Steps by kind and tool", note, labels=3)


def check_trajectories(trajectories: Trajectories) -> TrajectoriesCheck:
    """Check the trials and steps of trajectories for missing records."""
    return TrajectoriesCheck(trajectories, trajectories.notes)
