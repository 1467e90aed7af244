"""Checks of the rows of qrels and runs for `judged check`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from judged.data.compute import encode_column, pc
from judged.data.findings import Finding, Severity
from judged.data.index import normalize_ids
from judged.results.blocks import first_few
from judged.results.decimals import counted
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.data.index import QrelsIndex
    from judged.results.types import Bools, Floats, Ints, Strings, Table


_HUGE_GRADE = 100
_INVISIBLE = r"[\x{feff}\x{200b}-\x{200d}\x{00a0}\x{00ad}]|[\x00-\x1f\x7f]"


def duplicate_pairs(rows: CheckedRows, by: str) -> Iterator[Finding]:
    """Find duplicate pairs of topic and document; `by` is a column within whose values pairs must be unique."""
    key = rows.pair
    if rows.has(by):
        names = pc.unique(rows.table[by])
        if by != "run_id" or len(names) > 1:
            key = _compact_codes(key) * len(names) + encode_column(rows.table[by], names)
    repeated = np.flatnonzero(_is_repeated(key))
    if len(repeated):
        row, count = int(repeated[0]), len(repeated)
        pair = f"document {rows.table['doc_id'][row]} of topic {rows.table['query_id'][row]}"
        problem = f"{pair} appears again; {counted(count, 'row')} repeat an earlier pair"
        yield rows.finding("error", "duplicate-pair", problem, "keep one row per pair", count=count, row=row)


def check_labels(rows: CheckedRows) -> Iterator[Finding]:
    """Find pairs with labels in several iterations (subtopics, assessors)."""
    repeated = np.flatnonzero(_is_repeated(rows.pair))
    if rows.has("iteration") and len(repeated) and not any(duplicate_pairs(rows, "iteration")):
        iterations, count = len(pc.unique(rows.table["iteration"])), len(repeated)
        problem = (
            f"{counted(count, 'row')} repeat a pair of topic and document under another iteration"
            f" ({counted(iterations, 'iteration')}: subtopics or assessors);"
            " measures with one label per pair use the highest grade"
        )
        fix = "if several labels per pair are not intended, select one iteration"
        yield rows.finding("warning", "several-labels", problem, fix, count=count, row=int(repeated[0]))


def check_grades(rows: CheckedRows) -> Iterator[Finding]:
    """Find topics without relevant documents, and unusual grades."""
    values = rows.column("relevance")
    infinite_rows = np.flatnonzero(~np.isfinite(values))
    if len(infinite_rows):
        problem, fix = (
            f"the grade of {counted(len(infinite_rows), 'row')} is not a finite number",
            "write finite numbers",
        )
        yield rows.finding("error", "bad-relevance", problem, fix, count=len(infinite_rows), row=int(infinite_rows[0]))
    best_grade = np.full(len(rows.topics), -np.inf)
    np.maximum.at(best_grade, rows.topic, values)
    empty_topics = np.flatnonzero(best_grade <= 0)
    if len(empty_topics):
        problem = f"{counted(len(empty_topics), 'topic')} without a relevant document: {rows.names(empty_topics)}"
        fix = "exclude these topics from means with undefined=skip; most measures are 0 or undefined for these topics"
        row = rows.first_row(empty_topics[0])
        yield rows.finding("warning", "topics-without-relevant", problem, fix, count=len(empty_topics), row=row)
    small_rows = np.flatnonzero((values > 0) & (values < 1))
    if len(small_rows):
        problem = (
            f"{counted(len(small_rows), 'grade')} between 0 and 1 count as not relevant in binary measures such as AP"
        )
        fix = f"set a lower relevance threshold with --rel, such as {values[small_rows].min():g}"
        yield rows.finding("warning", "grades-below-1", problem, fix, count=len(small_rows), row=int(small_rows[0]))
    huge_rows = np.flatnonzero(np.isfinite(values) & (values > _HUGE_GRADE))
    if len(huge_rows):
        count, highest = counted(len(huge_rows), "grade"), values[huge_rows].max()
        problem = f"{count} above {_HUGE_GRADE}, the highest is {highest:g}; check that these are grades"
        fix = "correct these grades, or use gain=linear, because exponential gains would be huge"
        yield rows.finding("warning", "huge-grades", problem, fix, count=len(huge_rows), row=int(huge_rows[0]))
    if len(rows.table) > 1 and values[0] > 0 and len(np.unique(values)) == 1:
        problem = f"every grade is {values[0]:g}: no document is judged not relevant"
        fix = "add the documents that were judged not relevant, with grade 0"
        yield rows.finding("warning", "one-grade", problem, fix, count=len(values))


def check_scores(rows: CheckedRows, index: QrelsIndex | None = None) -> Iterator[Finding]:
    """Find tied scores, topics with constant scores, and ranks that disagree with the scores."""
    if not rows.has("score"):
        yield rows.finding("info", "no-scores", "the run has no scores, so it is a set without a ranking")
        return
    scores = rows.column("score")
    yield from find_ties(rows, scores, index)
    if rows.has("rank"):
        yield from _rank_order(rows, scores)


def _rank_order(rows: CheckedRows, scores: Floats) -> Iterator[Finding]:
    order = np.lexsort((rows.column("rank"), rows.topic))
    topics = rows.topic[order]
    rises_in_score = (topics[1:] == topics[:-1]) & (scores[order][1:] > scores[order][:-1])
    topics_out_of_order = np.unique(topics[1:][rises_in_score])
    if len(topics_out_of_order):
        count, names = counted(len(topics_out_of_order), "topic"), rows.names(topics_out_of_order)
        problem = f"the ranks disagree with the scores in {count}: {names}; the scores are used"
        fix = "if the ranks are correct, write scores that decrease with the rank"
        yield rows.finding(
            "warning",
            "rank-order",
            problem,
            fix,
            count=len(topics_out_of_order),
            row=int(order[1:][rises_in_score].min()),
        )


def check_ids(rows: CheckedRows) -> Iterator[Finding]:
    """Find ids that differ only in form or have invisible characters, and topics whose rows are not contiguous."""
    is_start = np.r_[True, rows.topic[1:] != rows.topic[:-1]]
    if is_start.sum() > len(rows.topics):
        count = int((np.unique(rows.topic[is_start], return_counts=True)[1] > 1).sum())
        problem = f"the rows of {counted(count, 'topic')} are not contiguous, so reading takes longer"
        yield rows.finding("info", "not-grouped", problem, "sort by topic", count=count)
    for name, ids in (("query_id", rows.topics), ("doc_id", rows.docs)):
        invisible = ids.filter(pc.match_substring_regex(ids, _INVISIBLE))
        if len(invisible):
            row = pc.index(rows.table[name], invisible[0]).as_py()
            problem = f"{counted(len(invisible), name)} with invisible characters, such as {invisible[0].as_py()!r}"
            yield rows.finding(
                "warning", "invisible-characters", problem, "remove these characters", count=len(invisible), row=row
            )
    keys = normalize_ids(rows.topics)
    repeated = np.flatnonzero(_is_repeated(encode_column(keys, pc.unique(keys))))
    if len(repeated):
        topic = int(repeated[0])
        first_topic = pc.index(keys, keys[topic]).as_py()
        first_id, other_id = rows.topics[first_topic].as_py(), rows.topics[topic].as_py()
        problem = f"the topics {first_id!r} and {other_id!r} differ only in leading zeros, case, or Unicode form"
        fix, row = "write each id in the same form everywhere", rows.first_row(topic)
        yield rows.finding("warning", "near-same-ids", problem, fix, count=len(repeated), row=row)


def compare_with_qrels(rows: CheckedRows, index: QrelsIndex) -> Iterator[Finding]:
    """Compare the ids of a run with the judged ids."""
    topics, docs = index.topic_ids, index.docs
    near_matches = (
        *_near_matches(rows, "query_id", rows.topics, topics),
        *_near_matches(rows, "doc_id", rows.docs, docs),
    )
    if not pc.sum(pc.is_in(rows.topics, value_set=topics)).as_py():
        problem = (
            f"run and qrels have no topic in common: the run has {first_few(rows.topics.to_pylist(), 3)}, "
            f"the qrels have {first_few(topics.to_pylist(), 3)}"
        )
        yield rows.finding("error", "no-common-topics", problem, "use the qrels for the topics of the run")
        yield from near_matches
        return
    codes = np.nan_to_num(pc.index_in(rows.topics, value_set=topics).to_numpy(zero_copy_only=False), nan=-1)
    if (index.rows_of(codes.astype(np.int64)[rows.topic], rows.table["doc_id"]) < 0).all():
        yield _nothing_judged_finding(rows, docs)
    yield from near_matches
    missing_topics = topics.filter(pc.invert(pc.is_in(topics, value_set=rows.topics)))
    if count := len(missing_topics):
        problem = (
            f"no documents returned for {counted(count, 'topic')} of the qrels: {first_few(missing_topics.to_pylist())}"
        )
        fix = "return documents for these topics; otherwise these topics score 0"
        yield rows.finding("warning", "missing-topics", problem, fix, count=count)
    unjudged_topics = rows.topics.filter(pc.invert(pc.is_in(rows.topics, value_set=topics)))
    if count := len(unjudged_topics):
        problem = f"no judgment for {counted(count, 'topic')} of the run: {first_few(unjudged_topics.to_pylist())}"
        fix = "judge documents of these topics, or remove these topics from the run, because measures exclude them"
        row = pc.index(rows.table["query_id"], unjudged_topics[0]).as_py()
        yield rows.finding("warning", "extra-topics", problem, fix, count=count, row=row)


def compare_with_corpus(rows: CheckedRows, corpus: Strings, where: str) -> Iterator[Finding]:
    """Find documents of qrels or a run that are not in the corpus."""
    absent = rows.docs.filter(pc.invert(pc.is_in(rows.docs, value_set=corpus)))
    if len(absent):
        docs = counted(len(rows.docs), "document")
        problem = f"{len(absent):,} of {docs} are missing from the corpus {where}: {first_few(absent.to_pylist())}"
        row = pc.index(rows.table["doc_id"], absent[0]).as_py()
        fix = "use the corpus that was judged and searched; its ids must be identical"
        yield rows.finding("warning", "not-in-corpus", problem, fix, count=len(absent), row=row)


def _nothing_judged_finding(rows: CheckedRows, docs: Strings) -> Finding:
    """Report that no returned document is judged, with the likely difference between the ids of run and qrels."""
    examples = f"the run has {first_few(rows.docs.to_pylist(), 3)}, the qrels have {first_few(docs.to_pylist(), 3)}"
    cause, fix = "", "use the same document ids in the run and the qrels"
    for description, (pattern, source), advice in _ID_DIFFERENCES:
        long_ids, short_ids = (rows.docs, docs) if source == "run" else (docs, rows.docs)
        shortened_ids = pc.replace_substring_regex(long_ids, pattern, "")
        if 2 * int(pc.sum(pc.is_in(shortened_ids, value_set=short_ids)).as_py() or 0) >= len(long_ids):
            cause, fix = f"; {description}", advice
            break
    else:
        lengths = set(pc.utf8_length(rows.docs).to_pylist())
        prefixes = pc.utf8_slice_codeunits(docs, 0, max(lengths))
        if len(lengths) == 1 and pc.all(pc.is_in(rows.docs, value_set=prefixes)).as_py():
            cause, fix = f"; document ids of the run are truncated to {max(lengths)} characters", "write the full ids"
    return rows.finding("error", "nothing-judged", f"no returned document is judged: {examples}{cause}", fix)


_DOCUMENT_ID_FIX = (
    "write the id of the document instead of the id of its passage, once per document with its best score"
)
_SAME_IDS_FIX = "write the ids as in the qrels"
_ID_DIFFERENCES = (
    ("document ids of the run end in .0", (r"\.0+$", "run"), "write whole numbers without a fraction"),
    ("document ids of the qrels end in .0", (r"\.0+$", "qrels"), "write whole numbers without a fraction"),
    ("document ids of the run have a suffix", (r"[#@:/|_.\- ][^#@:/|_.\- ]*$", "run"), _DOCUMENT_ID_FIX),
    ("document ids of the run have a prefix", (r"^[^/:|#_\-]*[/:|#_\-]", "run"), _SAME_IDS_FIX),
    ("document ids of the run start with a path", (r"^.*/", "run"), _SAME_IDS_FIX),
    ("document ids of the run end with a file extension", (r"\.[A-Za-z0-9]{1,5}$", "run"), _SAME_IDS_FIX),
    (
        "document ids of the qrels have a suffix",
        (r"[#@:/|_.\- ][^#@:/|_.\- ]*$", "qrels"),
        "write ids of passages in the run too",
    ),
    ("document ids of the qrels have a prefix", (r"^[^/:|#_\-]*[/:|#_\-]", "qrels"), _SAME_IDS_FIX),
)
"""Typical differences. If the text that matches the pattern is removed, the ids of run and qrels are equal."""


def _near_matches(rows: CheckedRows, name: str, run_ids: Strings, judged_ids: Strings) -> Iterator[Finding]:
    """Find ids of the run that are equal to judged ids after normalization."""
    unjudged = run_ids.filter(pc.invert(pc.is_in(run_ids, value_set=judged_ids)))
    unreturned = judged_ids.filter(pc.invert(pc.is_in(judged_ids, value_set=run_ids)))
    if not len(unjudged) or not len(unreturned):
        return
    match = pc.index_in(normalize_ids(unjudged), value_set=normalize_ids(unreturned))
    matched = np.flatnonzero(pc.is_valid(match).to_numpy(zero_copy_only=False))
    if len(matched):
        run_id = unjudged[int(matched[0])]
        judged_id = unreturned[match[int(matched[0])].as_py()].as_py()
        noun = "topics" if name == "query_id" else "documents"
        problem = (
            f"{len(matched):,} {noun} of the run differ from judged ids only in leading zeros, case, or Unicode form: "
            f"{run_id.as_py()!r} here, {judged_id!r} in the qrels"
        )
        row, fix = pc.index(rows.table[name], run_id).as_py(), "write the ids as in the qrels"
        yield rows.finding("warning", "near-same-ids", problem, fix, count=len(matched), row=row)


def _compact_codes(keys: Ints) -> Ints:
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _is_repeated(keys: Ints) -> Bools:
    """Mark the positions whose key has appeared before."""
    order = np.argsort(keys, kind="stable")
    is_repeated = np.zeros(len(keys), dtype=np.bool_)
    is_repeated[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return is_repeated


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """A table with ids encoded as integers, and a function that returns the line of a row."""

    table: Table = field(repr=False)
    where: str
    line: Callable[[int], int | None] = field(repr=False)

    @cached_property
    def topics(self) -> Strings:
        """Distinct query ids, in order of appearance."""
        return pc.unique(self.table["query_id"])

    @cached_property
    def docs(self) -> Strings:
        """Distinct document ids, in order of appearance."""
        return pc.unique(self.table["doc_id"])

    @cached_property
    def topic(self) -> Ints:
        """Topic of each row as a position in `topics`."""
        return encode_column(self.table["query_id"], self.topics)

    @cached_property
    def pair(self) -> Ints:
        """Topic and document of each row as a single integer."""
        return self.topic * len(self.docs) + encode_column(self.table["doc_id"], self.docs)

    def has(self, name: str) -> bool:
        """Whether the table has this column."""
        return name in self.table.column_names

    def column(self, name: str) -> Floats:
        """Return a numeric column."""
        return self.table[name].to_numpy().astype(np.float64)

    def names(self, topics: Ints) -> str:
        """Format the ids of the first few topics."""
        return first_few(self.topics.take(topics).to_pylist())

    def first_row(self, topic: int) -> int:
        """Return the position of the first row of a topic."""
        return int(np.flatnonzero(self.topic == topic)[0])

    def finding(
        self, severity: Severity, rule: str, problem: str, fix: str = "", *, count: int = 1, row: int = -1
    ) -> Finding:
        """Create a finding with the line of a row."""
        line = self.line(row) if row >= 0 else None
        return Finding(severity, self.where, line, rule, problem, fix, count)


_TOP_RANKS = 10


@dataclass(frozen=True, eq=False)
class _TiedGroups:
    """Rows sorted by topic and descending score, with groups of equal scores."""

    rows: CheckedRows
    scores: Floats

    @cached_property
    def order(self) -> Ints:
        """Rows in sorted order."""
        return np.lexsort((-self.scores, self.rows.topic))

    @cached_property
    def topic(self) -> Ints:
        """Topic of each position."""
        return self.rows.topic[self.order]

    @cached_property
    def group(self) -> Ints:
        """Number of the group of each position."""
        scores = self.scores[self.order]
        is_start = (self.topic[1:] != self.topic[:-1]) | (scores[1:] != scores[:-1])
        return np.cumsum(np.r_[False, is_start])

    @cached_property
    def size(self) -> Ints:
        """Number of documents of each group."""
        return np.bincount(self.group)

    @cached_property
    def first(self) -> Ints:
        """First position of each group."""
        return np.r_[0, np.cumsum(self.size)[:-1]]

    @cached_property
    def rank(self) -> Ints:
        """First rank of the group of each position."""
        topic_start = np.searchsorted(self.topic, self.topic)
        return self.first[self.group] - topic_start + 1

    @cached_property
    def tied(self) -> Bools:
        """Whether the group of each position has several documents."""
        return self.size[self.group] > 1


def find_ties(rows: CheckedRows, scores: Floats, index: QrelsIndex | None) -> Iterator[Finding]:
    """Find tied scores, topics with constant scores, and ties between documents of different grades."""
    groups = _TiedGroups(rows, scores)
    count = int(groups.tied.sum())
    if not count:
        return
    position = np.arange(len(scores)) - np.searchsorted(groups.topic, groups.topic)
    share_in_top = float(np.mean(groups.tied[position < _TOP_RANKS]))
    problem = (
        f"{counted(count, 'document')} ({count / len(scores):.1%} of all) have the same score as another document, in"
        f" {counted(len(np.unique(groups.topic[groups.tied])), 'topic')} ({share_in_top:.1%} of the first"
        f" {_TOP_RANKS} documents of each topic): the order of tied documents is arbitrary"
    )
    row = int(groups.order[groups.tied].min())
    yield rows.finding("warning", "ties", problem, "write scores with more digits", count=count, row=row)
    topic_size = np.bincount(groups.topic)[groups.topic]
    constant_topics = np.unique(groups.topic[(groups.size[groups.group] == topic_size) & (topic_size > 1)])
    if len(constant_topics):
        count = counted(len(constant_topics), "topic")
        problem = f"{count} with the same score for all documents: {rows.names(constant_topics)}"
        fix, row = "write the original scores of the system", rows.first_row(constant_topics[0])
        yield rows.finding("warning", "constant-scores", problem, fix, count=len(constant_topics), row=row)
    if index is not None:
        yield from _ties_of_different_grades(groups, index)


def _ties_of_different_grades(groups: _TiedGroups, index: QrelsIndex) -> Iterator[Finding]:
    """Find topics with ties between documents of different grades; unjudged documents have grade 0."""
    rows = groups.rows
    codes = np.array([index.codes.get(name, -1) for name in rows.topics.to_pylist()], dtype=np.int64)
    topic, docs = codes[groups.topic], pc.take(rows.table["doc_id"], groups.order).combine_chunks()
    pair = np.where(topic >= 0, index.rows_of(np.maximum(topic, 0), docs), -1)
    grade = np.where(pair >= 0, np.maximum(index.grade[pair], 0.0), 0.0)
    lowest, highest = np.minimum.reduceat(grade, groups.first), np.maximum.reduceat(grade, groups.first)
    is_mixed = (lowest < highest)[groups.group]
    if is_mixed.any():
        all_topics, top_topics = (
            np.unique(groups.topic[mask]) for mask in (is_mixed, is_mixed & (groups.rank <= _TOP_RANKS))
        )
        problem = (
            f"documents with different grades have equal scores in {counted(len(all_topics), 'topic')}; in"
            f" {len(top_topics)} of these topics, such documents are in the top {_TOP_RANKS}, where the order of"
            " these documents changes the scores"
        )
        fix = "give tied documents different scores, or use 'judged evaluate --ties bounds' to show the effect of ties"
        first_row = int(groups.order[is_mixed].min())
        yield rows.finding("warning", "ties-matter", problem, fix, count=len(all_topics), row=first_row)
