"""What the rows of qrels and runs say about themselves, and about each other, for `judged check`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from judged.data.compute import codes_of, pc
from judged.data.findings import Finding, Severity
from judged.results.blocks import first_few
from judged.results.decimals import counted
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged.data.index import QrelsIndex
    from judged.results.types import Bools, Floats, Ints, Strings, Table


_HUGE = 100
_INVISIBLE = r"[\x{feff}\x{200b}-\x{200d}\x{00a0}\x{00ad}]|[\x00-\x1f\x7f]"


def duplicate_pairs(rows: Rows, by: str) -> Iterator[Finding]:
    """Find pairs of a topic and a document that stand twice; `by` names a column that tells them apart."""
    key = rows.pair
    if rows.has(by):
        names = pc.unique(rows.table[by])
        if by != "run_id" or len(names) > 1:
            key = _compact(key) * len(names) + codes_of(rows.table[by], names)
    again = np.flatnonzero(_seen_before(key))
    if len(again):
        row, count = int(again[0]), len(again)
        pair = f"document {rows.table['doc_id'][row]} of topic {rows.table['query_id'][row]}"
        problem = f"{pair} stands here again; {counted(count, 'row')} in all repeat an earlier pair"
        yield rows.finding("error", "duplicate-pair", problem, "keep one row per pair", count=count, row=row)


def several_labels(rows: Rows) -> Iterator[Finding]:
    """Find pairs that have labels in several iterations (subtopics, assessors)."""
    again = np.flatnonzero(_seen_before(rows.pair))
    if rows.has("iteration") and len(again) and not any(duplicate_pairs(rows, "iteration")):
        kinds, count = len(pc.unique(rows.table["iteration"])), len(again)
        problem = (
            f"{counted(count, 'row')} give another label, under another iteration, to a pair that has one "
            f"({counted(kinds, 'iteration')}: subtopics or assessors); measures of one label take the highest"
        )
        fix = "choose one iteration if that is not meant"
        yield rows.finding("warning", "several-labels", problem, fix, count=count, row=int(again[0]))


def grades(rows: Rows) -> Iterator[Finding]:
    """Find topics without relevant documents, and scales of grades that are odd."""
    values = rows.column("relevance")
    infinite = np.flatnonzero(~np.isfinite(values))
    if len(infinite):
        problem, fix = f"no finite number in {counted(len(infinite), 'grade')}", "write finite numbers"
        yield rows.finding("error", "bad-relevance", problem, fix, count=len(infinite), row=int(infinite[0]))
    best = np.full(len(rows.topics), -np.inf)
    np.maximum.at(best, rows.topic, values)
    empty = np.flatnonzero(best <= 0)
    if len(empty):
        problem = f"{counted(len(empty), 'topic')} without a relevant document: {rows.names(empty)}"
        fix = "most measures are 0 or undefined there"
        row = rows.first_row(empty[0])
        yield rows.finding("warning", "topics-without-relevant", problem, fix, count=len(empty), row=row)
    small = np.flatnonzero((values > 0) & (values < 1))
    if len(small):
        problem = f"{counted(len(small), 'grade')} between 0 and 1: measures of relevance such as AP count from grade 1"
        fix = f"choose a lower level with --rel, such as {values[small].min():g}"
        yield rows.finding("warning", "grades-below-1", problem, fix, count=len(small), row=int(small[0]))
    huge = np.flatnonzero(np.isfinite(values) & (values > _HUGE))
    if len(huge):
        problem = f"{counted(len(huge), 'grade')} above {_HUGE}, the highest {values[huge].max():g}: are they grades?"
        fix = "exponential gains will be huge"
        yield rows.finding("warning", "huge-grades", problem, fix, count=len(huge), row=int(huge[0]))
    if len(rows.table) > 1 and len(np.unique(values)) == 1:
        problem = f"every grade is {values[0]:g}; what is judged not relevant is not listed"
        fix = "judged and relevant mean the same here"
        yield rows.finding("warning", "one-grade", problem, fix, count=len(values))


def score_order(rows: Rows, index: QrelsIndex | None = None) -> Iterator[Finding]:
    """Find equal scores, topics with one score only, and ranks that disagree with the scores."""
    if not rows.has("score"):
        yield rows.finding("info", "no-scores", "there are no scores: this is a set, and has no ranking")
        return
    scores = rows.column("score")
    yield from ties(rows, scores, index)
    if rows.has("rank"):
        yield from _rank_order(rows, scores)


def _rank_order(rows: Rows, scores: Floats) -> Iterator[Finding]:
    order = np.lexsort((rows.column("rank"), rows.topic))
    topics = rows.topic[order]
    rises = (topics[1:] == topics[:-1]) & (scores[order][1:] > scores[order][:-1])
    odd = np.unique(topics[1:][rises])
    if len(odd):
        problem = (
            f"the ranks disagree with the scores in {counted(len(odd), 'topic')}: {rows.names(odd)}; scores decide"
        )
        fix = "make the scores fall with the rank, if ranks are meant"
        yield rows.finding("warning", "rank-order", problem, fix, count=len(odd), row=int(order[1:][rises].min()))


def forms(rows: Rows) -> Iterator[Finding]:
    """Find ids that look alike or hold what cannot be seen, and topics whose rows are apart."""
    pieces = 1 + int((rows.topic[1:] != rows.topic[:-1]).sum())
    if pieces > len(rows.topics):
        apart = np.unique(rows.topic[np.r_[True, rows.topic[1:] != rows.topic[:-1]]], return_counts=True)[1] > 1
        problem = f"the rows of {counted(int(apart.sum()), 'topic')} do not stand together; reading takes longer"
        yield rows.finding("info", "not-grouped", problem, "sort by topic", count=int(apart.sum()))
    for name, ids in (("query_id", rows.topics), ("doc_id", rows.docs)):
        odd = ids.filter(pc.match_substring_regex(ids, _INVISIBLE))
        if len(odd):
            row = pc.index(rows.table[name], odd[0]).as_py()
            problem = f"{counted(len(odd), name)} with characters that cannot be seen, such as {odd[0].as_py()!r}"
            yield rows.finding("warning", "invisible-characters", problem, "take them out", count=len(odd), row=row)
    keys = normal_form(rows.topics)
    again = np.flatnonzero(_seen_before(codes_of(keys, pc.unique(keys))))
    if len(again):
        at = int(again[0])
        first = pc.index(keys, keys[at]).as_py()
        one, other = rows.topics[first].as_py(), rows.topics[at].as_py()
        problem = f"the topics {one!r} and {other!r} differ only in leading zeros, case or Unicode form"
        fix, row = "write each id in one way", rows.first_row(at)
        yield rows.finding("warning", "near-same-ids", problem, fix, count=len(again), row=row)


def against_qrels(rows: Rows, index: QrelsIndex) -> Iterator[Finding]:
    """Compare the ids of a run with those that are judged."""
    topics, docs = index.topic_ids, index.docs
    near = (*_near(rows, "query_id", rows.topics, topics), *_near(rows, "doc_id", rows.docs, docs))
    if not pc.sum(pc.is_in(rows.topics, value_set=topics)).as_py():
        problem = (
            f"no topic is in both: the run has {first_few(rows.topics.to_pylist(), 3)}, "
            f"the qrels have {first_few(topics.to_pylist(), 3)}"
        )
        yield rows.finding("error", "no-common-topics", problem, "use the qrels of these topics")
        yield from near
        return
    codes = np.nan_to_num(pc.index_in(rows.topics, value_set=topics).to_numpy(zero_copy_only=False), nan=-1)
    if (index.rows_of(codes.astype(np.int64)[rows.topic], rows.table["doc_id"]) < 0).all():
        yield _nothing_judged(rows, docs)
    yield from near
    missing = topics.filter(pc.invert(pc.is_in(topics, value_set=rows.topics)))
    if count := len(missing):
        problem = f"nothing returned for {counted(count, 'topic')} of the qrels: {first_few(missing.to_pylist())}"
        fix = "return documents for them, or they score 0"
        yield rows.finding("warning", "missing-topics", problem, fix, count=count)
    extra = rows.topics.filter(pc.invert(pc.is_in(rows.topics, value_set=topics)))
    if count := len(extra):
        problem = f"no judgment for {counted(count, 'topic')} of the run: {first_few(extra.to_pylist())}"
        fix = "they are left out; remove them or judge them"
        row = pc.index(rows.table["query_id"], extra[0]).as_py()
        yield rows.finding("warning", "extra-topics", problem, fix, count=count, row=row)


def against_corpus(rows: Rows, corpus: Strings, where: str) -> Iterator[Finding]:
    """Find documents of qrels or a run that are not in the corpus, whose ids are given."""
    absent = rows.docs.filter(pc.invert(pc.is_in(rows.docs, value_set=corpus)))
    if len(absent):
        docs = counted(len(rows.docs), "document")
        problem = f"{len(absent):,} of {docs} cannot be found in the corpus {where}: {first_few(absent.to_pylist())}"
        row = pc.index(rows.table["doc_id"], absent[0]).as_py()
        fix = "give the corpus that was judged and searched; its ids must be written alike"
        yield rows.finding("warning", "not-in-corpus", problem, fix, count=len(absent), row=row)


def _nothing_judged(rows: Rows, docs: Strings) -> Finding:
    """Say that no returned document is judged, and how ids of the run and of the qrels may differ."""
    examples = f"the run has {first_few(rows.docs.to_pylist(), 3)}, the qrels have {first_few(docs.to_pylist(), 3)}"
    cause, fix = "", "use one kind of document ids in both"
    for words, (pattern, longer), advice in _CAUSES:
        long, short = (rows.docs, docs) if longer == "run" else (docs, rows.docs)
        cut = pc.replace_substring_regex(long, pattern, "")
        if 2 * int(pc.sum(pc.is_in(cut, value_set=short)).as_py() or 0) >= len(long):
            cause, fix = f"; {words}", advice
            break
    else:
        lengths = set(pc.utf8_length(rows.docs).to_pylist())
        beginnings = pc.utf8_slice_codeunits(docs, 0, max(lengths))
        if len(lengths) == 1 and pc.all(pc.is_in(rows.docs, value_set=beginnings)).as_py():
            cause, fix = f"; ids of the run are cut after {max(lengths)} characters", "write them whole"
    return rows.finding("error", "nothing-judged", f"no returned document is judged: {examples}{cause}", fix)


_PARTS = "write the id of the document in place of that of its part, each document once, with its best score"
_SAME = "write the ids as the qrels do"
_CAUSES = (
    ("ids of the run end in .0", (r"\.0+$", "run"), "write whole numbers without a fraction"),
    ("ids of the qrels end in .0", (r"\.0+$", "qrels"), "write whole numbers without a fraction"),
    ("ids of the run have a part behind them", (r"[#@:/|_.\- ][^#@:/|_.\- ]*$", "run"), _PARTS),
    ("ids of the run have a prefix", (r"^[^/:|#_\-]*[/:|#_\-]", "run"), _SAME),
    ("ids of the run have a path before them", (r"^.*/", "run"), _SAME),
    ("ids of the run have a file's ending", (r"\.[A-Za-z0-9]{1,5}$", "run"), _SAME),
    ("ids of the qrels have a part behind them", (r"[#@:/|_.\- ][^#@:/|_.\- ]*$", "qrels"), "return parts, too"),
    ("ids of the qrels have a prefix", (r"^[^/:|#_\-]*[/:|#_\-]", "qrels"), _SAME),
)
"""How ids may differ: what is left of the longer ones without what a pattern finds is what the others are."""


def _near(rows: Rows, name: str, ours: Strings, judged: Strings) -> Iterator[Finding]:
    """Find ids that are not judged, but would be if they were written a little differently."""
    unknown = ours.filter(pc.invert(pc.is_in(ours, value_set=judged)))
    lacking = judged.filter(pc.invert(pc.is_in(judged, value_set=ours)))
    if not len(unknown) or not len(lacking):
        return
    hit = pc.index_in(normal_form(unknown), value_set=normal_form(lacking))
    near = np.flatnonzero(pc.is_valid(hit).to_numpy(zero_copy_only=False))
    if len(near):
        one = unknown[int(near[0])]
        other = lacking[hit[int(near[0])].as_py()].as_py()
        word = "topics" if name == "query_id" else "documents"
        problem = (
            f"{len(near):,} {word} of the run differ from judged ones only in leading zeros, case or Unicode form: "
            f"{one.as_py()!r} here, {other!r} in the qrels"
        )
        row, fix = pc.index(rows.table[name], one).as_py(), "write the ids as the qrels do"
        yield rows.finding("warning", "near-same-ids", problem, fix, count=len(near), row=row)


def normal_form(ids: Strings) -> Strings:
    """Write ids without what often changes by accident: leading zeros of numbers, case, Unicode form.

    >>> import pyarrow as pa
    >>> normal_form(pa.array(["007", "Doc-1", "0", "CACM-0046", "v1.05"])).to_pylist()
    ['7', 'doc-1', '0', 'cacm-46', 'v1.05']
    """
    bare = pc.replace_substring_regex(pc.utf8_lower(pc.utf8_normalize(ids, form="NFC")), r"^0+(.)", r"\1")
    return pc.replace_substring_regex(bare, r"([^0-9.])0+([0-9])", r"\1\2")


def _compact(keys: Ints) -> Ints:
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _seen_before(keys: Ints) -> Bools:
    """Mark every entry whose key stands at an earlier place too."""
    order = np.argsort(keys, kind="stable")
    again = np.zeros(len(keys), dtype=np.bool_)
    again[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return again


@dataclass(frozen=True, eq=False)
class Rows:
    """A table with its ids as codes, and the way from a row to its line."""

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
        """Each row's topic, as its position in `topics`."""
        return codes_of(self.table["query_id"], self.topics)

    @cached_property
    def pair(self) -> Ints:
        """Each row's topic and document as one number."""
        return self.topic * len(self.docs) + codes_of(self.table["doc_id"], self.docs)

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.table.column_names

    def column(self, name: str) -> Floats:
        """Give a column of numbers."""
        return self.table[name].to_numpy().astype(np.float64)

    def names(self, topics: Ints) -> str:
        """Return the ids of the first few of some topics."""
        return first_few(self.topics.take(topics).to_pylist())

    def first_row(self, topic: int) -> int:
        """Return the first row of a topic."""
        return int(np.flatnonzero(self.topic == topic)[0])

    def finding(
        self, severity: Severity, rule: str, problem: str, fix: str = "", *, count: int = 1, row: int = -1
    ) -> Finding:
        """Make a finding that stands in the line of a row."""
        line = self.line(row) if row >= 0 else None
        return Finding(severity, self.where, line, rule, problem, fix, count)


_TOP = 10


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows by topic and falling score, cut into groups of equal scores."""

    rows: Rows
    scores: Floats

    @cached_property
    def order(self) -> Ints:
        """The rows in this order."""
        return np.lexsort((-self.scores, self.rows.topic))

    @cached_property
    def topic(self) -> Ints:
        """The topic of each place."""
        return self.rows.topic[self.order]

    @cached_property
    def group(self) -> Ints:
        """The group of each place, counted through."""
        scores = self.scores[self.order]
        new = (self.topic[1:] != self.topic[:-1]) | (scores[1:] != scores[:-1])
        return np.cumsum(np.r_[False, new])

    @cached_property
    def size(self) -> Ints:
        """How many documents each group has."""
        return np.bincount(self.group)

    @cached_property
    def first(self) -> Ints:
        """Where each group begins."""
        return np.r_[0, np.cumsum(self.size)[:-1]]

    @cached_property
    def rank(self) -> Ints:
        """The first rank of the group that stands at each place."""
        topic_begins = np.searchsorted(self.topic, self.topic)
        return self.first[self.group] - topic_begins + 1

    @cached_property
    def tied(self) -> Bools:
        """Whether each place is in a group of several."""
        return self.size[self.group] > 1


def ties(rows: Rows, scores: Floats, index: QrelsIndex | None) -> Iterator[Finding]:
    """Find equal scores, topics with one score only, and ties that matter to these judgments."""
    groups = _Groups(rows, scores)
    count = int(groups.tied.sum())
    if not count:
        return
    place = np.arange(len(scores)) - np.searchsorted(groups.topic, groups.topic)
    top = float(np.mean(groups.tied[place < _TOP]))
    problem = (
        f"{counted(count, 'document')} ({count / len(scores):.1%}) share their score with another one, in"
        f" {counted(len(np.unique(groups.topic[groups.tied])), 'topic')}; of the first {_TOP} of each topic {top:.1%}:"
        " their order is a matter of convention"
    )
    row = int(groups.order[groups.tied].min())
    yield rows.finding("warning", "ties", problem, "write scores with more digits", count=count, row=row)
    whole = np.bincount(groups.topic)[groups.topic]
    level = np.unique(groups.topic[(groups.size[groups.group] == whole) & (whole > 1)])
    if len(level):
        problem = f"{counted(len(level), 'topic')} with one score for all documents: {rows.names(level)}"
        fix, row = "write the scores of the system", rows.first_row(level[0])
        yield rows.finding("warning", "constant-scores", problem, fix, count=len(level), row=row)
    if index is not None:
        yield from _effect(groups, index)


def _effect(groups: _Groups, index: QrelsIndex) -> Iterator[Finding]:
    """Find the topics in which documents of different grades are tied; one without a judgment has grade 0."""
    rows = groups.rows
    codes = np.array([index.codes.get(name, -1) for name in rows.topics.to_pylist()], dtype=np.int64)
    topic, docs = codes[groups.topic], pc.take(rows.table["doc_id"], groups.order).combine_chunks()
    row = np.where(topic >= 0, index.rows_of(np.maximum(topic, 0), docs), -1)
    grade = np.where(row >= 0, np.maximum(index.grade[row], 0.0), 0.0)
    low, high = np.minimum.reduceat(grade, groups.first), np.maximum.reduceat(grade, groups.first)
    matters = (low < high)[groups.group]
    if matters.any():
        in_all, in_top = (np.unique(groups.topic[part]) for part in (matters, matters & (groups.rank <= _TOP)))
        problem = (
            f"documents of different grades share a score in {counted(len(in_all), 'topic')}, in {len(in_top)} of them"
            f" among the first {_TOP}: there the order of ties changes measures"
        )
        fix, first = "see how much: judged evaluate --ties bounds", int(groups.order[matters].min())
        yield rows.finding("warning", "ties-matter", problem, fix, count=len(in_all), row=first)
