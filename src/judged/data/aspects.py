"""The labels of each judged pair one by one, where a pair has several: subtopics, assessors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from judged.data.compute import codes_of, pc

if TYPE_CHECKING:
    from judged._types import Floats, Ints, Table
    from judged.data.index import QrelsIndex


@dataclass(frozen=True, eq=False)
class Aspects:
    """Every judgment by its pair, with P judged pairs and A judgments."""

    # the distinct iterations (subtopics, assessors, `user subgroup`) in byte order; an aspect code is a position here.
    # One empty name where the qrels have no such column.
    names: tuple[str, ...]
    starts: Ints  # (P + 1,): where the judgments of each pair of `qrels.index` begin below
    # aspect, grade: (A,): each judgment's aspect code and grade, aspects rising within a pair
    aspect: Ints
    grade: Floats

    @cached_property
    def user(self) -> Ints:
        """The user of each name, as a code: names ``user subgroup`` stand for one user as far as the blank."""
        users = [name.partition(" ")[0] for name in self.names]
        codes = {name: code for code, name in enumerate(sorted(set(users)))}
        return np.array([codes[name] for name in users], dtype=np.int64)

    def of(self, pairs: Ints) -> tuple[Ints, Ints, Floats]:
        """Give the judgments of some pairs: which of the pairs, aspect code, grade; one entry a judgment."""
        counts = self.starts[pairs + 1] - self.starts[pairs]
        which = np.repeat(np.arange(len(pairs)), counts)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.repeat(self.starts[pairs], counts) + offset
        return which, self.aspect[at], self.grade[at]


def build_aspects(table: Table, index: QrelsIndex) -> Aspects:
    """Sort the judgments of a qrels table by pair and aspect."""
    pair = index.rows_of(codes_of(table["query_id"], index.topic_ids), table["doc_id"].combine_chunks())
    names: tuple[str, ...] = ("",)
    aspect = np.zeros(len(pair), dtype=np.int64)
    if "iteration" in table.column_names:
        column = table["iteration"]
        distinct = pc.unique(column)
        distinct = distinct.take(pc.sort_indices(distinct))
        names = tuple(distinct.to_pylist())
        aspect = codes_of(column, distinct)
    order = np.lexsort((aspect, pair))
    return Aspects(
        names=names,
        starts=np.searchsorted(pair[order], np.arange(len(index.topic) + 1)).astype(np.int64),
        aspect=aspect[order],
        grade=table["relevance"].to_numpy()[order],
    )
