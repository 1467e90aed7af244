"""Overview of trajectories: numbers of trials, and of steps by kind and tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from judged.data.compute import pc
from judged.pipelines.system_tables import distinct_rows
from judged.pipelines.trajectories.trajectories import COMPLETED, KEYS
from judged.results import COUNT, TEXT, Answer, Table, counted, number
from judged.results.table import columns_of

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
        return f"{counted(len(self.trajectories), 'trial')} of {counted(len(self.trajectories.query_ids), 'question')}"

    def facts(self) -> Mapping[str, Any]:
        """Return the numbers of questions and trials."""
        return {"n": len(self.trajectories.query_ids), "trials": len(self.trajectories)}

    def blocks(self) -> tuple[Block, ...]:
        """Return one row for each system, and one for each kind of step and tool."""
        return (self._systems(), self._steps())

    def _systems(self) -> Table:
        rows = [_numbers(self.trajectories.of_run(name)) for name in self.trajectories.run_names]
        columns = columns_of(
            rows, ("system", TEXT), ("n", COUNT, "questions"), ("trials", COUNT), ("completed", COUNT),
            ("answers", COUNT, "with answer"), ("citing", COUNT, "with citations"),
            ("confident", COUNT, "with confidence"), ("searches", number(2), "searches per trial"),
        )  # fmt: skip
        return Table("systems", columns, self.title, labels=1)

    def _steps(self) -> Table:
        steps = self.trajectories["steps"]
        lengths = pc.list_value_length(steps["documents"])
        has_documents = pc.is_in(steps["kind"], value_set=pa.array(["search", "open"]))
        is_unrecorded = pc.and_(pc.and_(pc.is_null(lengths), pc.invert(steps["failed"])), has_documents)
        table = pa.table({
            "system": steps["run_id"], "kind": steps["kind"], "tool": pc.fill_null(steps["tool"], ""),
            "failed": pc.cast(steps["failed"], "int64"), "unrecorded": pc.cast(is_unrecorded, "int64"),
            "documents": lengths,
        })  # fmt: skip
        keys = ["system", "kind", "tool"]
        sums = [([], "count_all"), ("failed", "sum"), ("unrecorded", "sum"), ("documents", "mean")]
        counts = table.group_by(keys, use_threads=False).aggregate(sums)
        counts = counts.rename_columns([*keys, "steps", "failed", "unrecorded", "documents"])
        columns = columns_of(
            counts.sort_by([("system", "ascending"), ("steps", "descending")]).to_pylist(),
            *((key, TEXT) for key in keys), ("steps", COUNT), ("failed", COUNT), ("unrecorded", COUNT, "not recorded"),
            ("documents", number(1), "documents per step"),
        )  # fmt: skip
        note = "not recorded: searches and opened documents that did not fail, without a list of documents"
        return Table("steps", columns, "Steps by kind and tool", note, labels=3)


def _numbers(system: Trajectories) -> dict[str, Any]:
    """Count the questions, trials, and searches of one system."""
    trials = system["trials"]
    return {
        "system": system.run_names[0],
        "n": len(system.query_ids),
        "trials": len(system),
        "completed": trials["status"].to_pylist().count(COMPLETED),
        "answers": len(trials["answer"].drop_null()),
        "citing": distinct_rows(system["citations"].select(KEYS["trials"])).num_rows,
        "confident": len(trials["confidence"].drop_null()),
        "searches": system["steps"]["kind"].to_pylist().count("search") / len(system),
    }


def check_trajectories(trajectories: Trajectories) -> TrajectoriesCheck:
    """Check the trials and steps of trajectories for missing records."""
    return TrajectoriesCheck(trajectories, trajectories.notes)
