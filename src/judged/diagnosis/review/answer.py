"""Labels to look at again as an answer: items most informative first, and how frequent each kind is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.data.records import records_of
from judged.data.texts import Text, Texts, shortened
from judged.errors import InputError
from judged.results import Answer, Column, Sentences, Table
from judged.results.decimals import counted, read_number
from judged.results.escaping import csv_lines
from judged.results.table import ANY, CHANGE, COUNT, TEXT, Show, beginning, columns_of, significant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance


_FORM = ("query_id", "doc_id", "relevance", "new_grade", "query", "title", "text")
_NEEDED = ("query_id", "doc_id", "new_grade")
_LONGEST = 1000  # characters of a text in a form: cells of spreadsheets have an end
_FIX = "fill in what ReviewList.tsv wrote: query_id, doc_id, relevance, new_grade"
_OTHER = "give the qrels that the list was made from"


def as_form(items: Iterable[ReviewItem]) -> str:
    """Write judgments with an empty column for the new grade; texts in one line, those of documents cut."""
    rows: list[Sequence[str]] = [_FORM]
    for item in items:
        query, title, text = (" ".join(part.split()) for part in (item.query, item.title, item.text))
        grade = "" if item.grade is None else str(int(item.grade)) if item.grade.is_integer() else repr(item.grade)
        rows.append([item.query_id, item.doc_id, grade, "", query, title, shortened(text, _LONGEST)])
    return csv_lines(rows, "\t")


class _Label(NamedTuple):
    """One row that was filled in; without ``relevance``, the list does not say what the grade was."""

    query_id: str
    doc_id: str
    relevance: str | None
    new_grade: float
    line: int | None


def apply_review(qrels: Any, reviewed: Any) -> Qrels:
    """Put the new grades of a reviewed list into judgments.

    Parameters
    ----------
    qrels
        The judgments that the list was made from; a `Qrels`, or anything that `Qrels.of` takes. They stay as they are.
    reviewed
        A file that `ReviewList.tsv` wrote, with numbers in the column ``new_grade``; as CSV it is understood too. Or
        a data frame, or a list of dicts with these columns. Rows without a new grade change nothing.

    Returns
    -------
    Qrels
        In the same order; documents that were not judged come last.

    Raises
    ------
    InputError
        If no grade is filled in, one is not a number, a row is not of these judgments (an unknown topic, another grade
        than it had), a document is listed twice with different grades, or has several labels.

    Examples
    --------
    >>> reviewed = [{"query_id": "q", "doc_id": "b", "relevance": 0, "new_grade": 2},
    ...             {"query_id": "q", "doc_id": "x", "relevance": None, "new_grade": 1}]
    >>> apply_review({"q": {"a": 1, "b": 0}}, reviewed).table.to_pydict()["relevance"]
    [1.0, 2.0, 1.0]
    """
    known = Qrels.of(qrels)
    where = str(reviewed) if isinstance(reviewed, (str, Path)) else "<reviewed>"
    index, old = known.index, known.table
    if old.num_rows > len(index.topic):
        problem = "some documents have several labels (subtopics, assessors), and a review has one new grade"
        raise InputError(problem, fix="review the judgments of each by itself", path=known.where)
    labels = _filled(reviewed, where)
    for label in labels.values():
        if label.query_id not in index.codes:
            problem = f"the qrels have no topic {label.query_id!r}"
            raise InputError(problem, fix=_OTHER, path=where, line=label.line)
    codes = np.array([index.codes[query] for query, _ in labels], dtype=np.int64)
    rows = index.rows_of(codes, pa.array([doc for _, doc in labels], pa.string())).tolist()
    for label, row in zip(labels.values(), rows, strict=True):
        _refuse_other(label, None if row < 0 else float(index.grade[row]), where)
    new = {key: label.new_grade for key, label in labels.items()}
    keys = zip(old["query_id"].to_pylist(), old["doc_id"].to_pylist(), strict=True)
    grades = [new.get(key, grade) for key, grade in zip(keys, old["relevance"].to_pylist(), strict=True)]
    table = old.set_column(old.column_names.index("relevance"), "relevance", pa.array(grades, pa.float64()))
    added = [(*key, new[key], "0") for key, row in zip(labels, rows, strict=True) if row < 0]
    names = ("query_id", "doc_id", "relevance", "iteration")
    columns = dict(zip(names, zip(*added, strict=True) if added else [()] * 4, strict=True))
    more = pa.table({name: pa.array(columns[name], old[name].type) for name in old.column_names})
    return Qrels(pa.concat_tables([table, more]), known.name, known.where, origin=known.origin)


def _filled(reviewed: Any, where: str) -> dict[tuple[str, str], _Label]:
    """Read the rows in which a new grade is filled in."""
    labels: dict[tuple[str, str], _Label] = {}
    for line, row in records_of(reviewed, where, "reviewed labels", _FIX):
        if lacking := [name for name in _NEEDED if name not in row]:
            raise InputError(f"no column {lacking[0]} in it", fix=_FIX, path=where, line=line)
        if not _text(row["new_grade"]):
            continue
        query = id_text(row["query_id"], "query id", path=where, line=line)
        doc = id_text(row["doc_id"], "document id", path=where, line=line)
        had = _text(row["relevance"]) if "relevance" in row else None
        label = _Label(query, doc, had, _grade(row["new_grade"], where, line), line)
        before = labels.setdefault((query, doc), label)
        if before.new_grade != label.new_grade:
            both = f"{before.new_grade:g} and {label.new_grade:g}"
            problem = f"document {doc} of topic {query} has two new grades, {both}"
            raise InputError(problem, fix="decide for one", path=where, line=line)
    if not labels:
        raise InputError("no new grade is filled in", fix="write grades into the column new_grade", path=where)
    return labels


def _grade(text: Any, where: str, line: int | None) -> float:
    try:
        value = read_number(text)
    except ValueError as error:
        raise InputError(f"the new grade {text!r:.60} {error}", fix="write 0, 1, 2...", path=where, line=line) from None
    if math.isinf(value):
        raise InputError(f"the new grade {text!r} is infinite", fix="write 0, 1, 2...", path=where, line=line)
    return value


def _text(value: Any) -> str:
    """Give what stands in a cell; ``""``: nothing."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value).strip()


def _refuse_other(label: _Label, now: float | None, where: str) -> None:
    """Refuse a row that was made from other judgments."""
    if label.relevance is None:
        return
    try:
        then = read_number(label.relevance) if label.relevance else None
    except ValueError:
        then = math.nan
    if now != then:
        had, has = ("none" if grade is None else f"{grade:g}" for grade in (then, now))
        document = f"document {label.doc_id} of topic {label.query_id}"
        problem = f"the list says that {document} has grade {had}, the qrels say {has}"
        raise InputError(problem, fix=_OTHER, path=where, line=label.line)


ReviewKind: TypeAlias = Literal["false positive", "false negative", "unjudged"]
KINDS: tuple[ReviewKind, ...] = get_args(ReviewKind)

_RUNS = 4  # with columns of their own, and that are spoken of one by one
_SNIPPET = 200  # characters of a document
_RATES = (
    ("false_positives", "false_positive_rate", "returned", "documents judged not relevant"),
    ("unjudged", "unjudged_rate", "returned", "documents that are not judged"),
    ("false_negatives", "miss_rate", "relevant", "relevant documents not among the first {}"),
)  # each count, its share, of what, and in words
_BIAS = (
    "What is listed is what these runs got wrong: if it alone is judged again, their scores rise against those of runs"
    " that were not looked at. Judge the list without knowing runs and ranks (the TSV form hides them), and score all"
    " runs with the new judgments."
)


@dataclass(frozen=True)
class ReviewItem:
    """One document of one topic, whose label should be looked at."""

    query_id: str
    doc_id: str
    # `false positive`: among the first k of a run, and judged below the level; `false negative`: relevant, and not
    # among the first k of every run; `unjudged`: among the first k of a run, without a judgment
    kind: ReviewKind
    grade: float | None  # the grade it has; None: unjudged
    other_grade: float  # the grade that the changes are for: 0 for a false negative, the highest one for the others
    ranks: Mapping[str, int | None]  # by run; None: not returned
    # by run: how much its score on the topic would change with the other grade. NaN where a score is undefined.
    change: Mapping[str, float]
    difference: float | None = None  # how much the second run's lead over the first would change; None for one run
    turns: bool = False  # whether the other of the first two runs would then be the better one on the topic
    slices: tuple[str, ...] = ()  # those that the topic is in
    query: str = ""  # where they were given
    title: str = ""  # where they were given
    text: str = ""  # where they were given

    @property
    def missed(self) -> tuple[str, ...]:
        """The runs that did not return it."""
        return tuple(run for run, rank in self.ranks.items() if rank is None)

    @property
    def largest(self) -> float:
        """The largest change, in either direction."""
        return max((value for value in self.change.values() if not math.isnan(value)), key=abs, default=math.nan)


@dataclass(frozen=True)
class ReviewRates:
    """What stands among the first k documents of some topics, and what does not."""

    # run, slice: `""`: all topics
    run: str
    slice: str
    n: int
    # whether the slice has fewer topics than it is judged by: its rates are shown, and nothing is said of them
    small: bool
    returned: int  # how many documents stand among the first k of these topics
    # false_positives, unjudged: how many of them are judged below the level, and how many are not judged
    false_positives: int
    unjudged: int
    relevant: int  # how many relevant documents the qrels know
    # low, missed: how many of them the run returned below rank k, and how many not at all
    low: int
    missed: int
    without_place: int  # how many must be lacking, whatever the run does, as their topics have more than k

    @property
    def false_negatives(self) -> int:
        """How many relevant documents are not among the first k."""
        return self.low + self.missed

    @property
    def false_positive_rate(self) -> float:
        """The share of the first k documents that are judged and not relevant; NaN if there are none."""
        return _share(self.false_positives, self.returned)

    @property
    def unjudged_rate(self) -> float:
        """The share of the first k documents that are not judged."""
        return _share(self.unjudged, self.returned)

    @property
    def miss_rate(self) -> float:
        """The share of the relevant documents that are not among the first k; NaN if there are none."""
        return _share(self.false_negatives, self.relevant)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


@dataclass(frozen=True, eq=False, repr=False)
class ReviewList(Answer):
    """What `review` returns: labels to look at, most informative first, and how frequent each kind is.

    Attributes
    ----------
    measure : str
    cutoff : int
        How many documents of each topic count as shown.
    rel, highest : float
        From which grade on a document is relevant, and the grade that others are tried with.
    runs, kinds : tuple of str
        The runs, and the kinds of labels that are listed.
    items : tuple of ReviewItem
    found : dict of str to int
        How many items there are of each kind, listed or not.
    turning : int
        How many items would turn which of the first two runs is better on their topic.
    rates : tuple of ReviewRates
        By run and slice.
    provenance : Provenance
    notes : tuple of Note

    Examples
    --------
    >>> from judged import review
    >>> listed = review({"q": {"a": 2, "b": 0, "c": 1}}, {"q": ["b", "x", "a"]}, measure="nDCG@2")
    >>> print(listed.table().text())
    topic  document  kind            grade  other  rank   change
    q      b         false positive      0      2     1  +0.6131
    q      x         unjudged            -      2     2  +0.3869
    q      a         false negative      2      0     3  +0.0000
    q      c         false negative      1      0     -  +0.0000
    """

    kind: ClassVar[str] = "review"
    main: ClassVar[str] = "items"

    measure: str
    cutoff: int
    rel: float
    highest: float
    runs: tuple[str, ...]
    kinds: tuple[ReviewKind, ...]
    items: tuple[ReviewItem, ...]
    found: Mapping[ReviewKind, int]
    turning: int
    rates: tuple[ReviewRates, ...]
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """By which measure labels are ordered."""
        return f"Labels to review, by {self.measure}"

    def facts(self) -> dict[str, Any]:
        """Give the options, and how many labels of each kind there are."""
        names = ("measure", "cutoff", "rel", "highest", "kinds", "found", "turning")
        return {name: getattr(self, name) for name in names}

    def blocks(self) -> tuple[Block, ...]:
        """Give rates, items with what their topics and documents say, and what may be concluded."""
        return _rates_table(self.rates, self.cutoff), self._items(), Sentences(self.sentences)

    def _items(self) -> Table:
        """Lay out a row an item; of many runs people see what sums them up."""
        items, one, few = self.items, len(self.runs) == 1, len(self.runs) <= _RUNS
        sliced, grade = any(item.slices for item in items), significant()
        columns = [*columns_of(items, ("query_id", TEXT, "topic"), ("doc_id", TEXT, "document"), ("kind", TEXT))]
        columns += columns_of(items, ("slices", ANY) if sliced else "slices")
        snippets = [Texts({"": Text(item.title, item.text)}).snippet("", _SNIPPET) for item in items]
        queries = Column("query", [item.query for item in items], beginning(120), below=True)
        says = Column("says", snippets, TEXT, only="people", below=True)
        texts = [column for column in (queries, says) if any(column.values)]
        columns += [*texts, *columns_of(items, ("grade", grade), ("other_grade", grade, "other"))]
        for name, show, key in (("rank", COUNT, "ranks"), ("change", CHANGE, "change")):
            for run in self.runs:
                values = [getattr(item, key)[run] for item in items]
                heading = name if one else f"{name} {run}"
                columns.append(Column(f"{name} {run}", values, show, heading, only="" if few else "data"))
        if not few:
            shown = [sum(rank is not None and rank <= self.cutoff for rank in item.ranks.values()) for item in items]
            runs = [f"{count} of {counted(len(self.runs), 'run')}" for count in shown]
            columns.append(Column("shown", runs, TEXT, f"in first {self.cutoff} of", only="people"))
            columns.append(Column("largest", [item.largest for item in items], CHANGE, "largest change", only="people"))
        yes = Show(lambda turns: "yes" if turns else "", "bool")
        columns += columns_of(items, *(("difference", "turns") if one else (("difference", CHANGE), ("turns", yes))))
        columns += columns_of(items, *(() if queries in texts else ("query",)), "title", "text", "missed")
        return Table("items", tuple(columns), labels=3 + sliced + len(texts))

    def jsonl(self) -> str:
        """Write the items as JSON Lines, in full precision, with whole texts."""
        return "\n".join(json.dumps(record, ensure_ascii=False) for record in self.table().records())

    def tsv(self) -> str:
        """Write a form to fill in: judgments with an empty column for the new grade, for `apply_review`.

        It shows neither runs nor ranks nor changes: who judges should not know what a label is good for.
        """
        return as_form(self.items)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, what the changes mean, and what may not be concluded."""
        whole = [row for row in self.rates if not row.slice]
        said = [text for row in whole[: _RUNS if len(whole) <= _RUNS else 2] for text in self._of_rates(row)]
        if len(whole) > _RUNS:
            said.append(f"The {counted(len(whole) - 2, 'other run is', 'other runs are')} in the table of rates.")
        kinds = ((kind, self.found[kind]) for kind in self.kinds)
        counts = ", ".join(f"{n} unjudged" if kind == "unjudged" else counted(n, kind) for kind, n in kinds)
        count, several = len(self.items), len(self.runs) > 1
        some = count < sum(map(self.found.__getitem__, self.kinds))
        listed = f"; listed: the {count} most informative" if some else ""
        of_any = " of some run" if several else ""
        said.append(f"Labels to review, each topic and document once: {counts}{of_any}{listed}.")
        if several:
            first, second = self.runs[:2]
            said.append(
                f"{counted(self.turning, 'label')} would, each by itself, turn which of {first} and {second} has the"
                f" better {self.measure} on its topic{'; these stand first' if self.turning else ''}. The difference is"
                f" {second} minus {first}."
            )
        said.append(
            f"The change is that of the topic's {self.measure}, if the label were the other grade: {self.highest:g} for"
            " what is judged not relevant or not judged, 0 for what is relevant. It does not say how likely that is."
        )
        return (*said, _BIAS)

    def _of_rates(self, row: ReviewRates) -> Iterator[str]:
        """Say what was counted of a run, and in which slice each rate is highest, among those with enough topics."""
        wrong, unknown, lacking = (f"{getattr(row, count)}{_percent(getattr(row, rate))}" for count, rate, *_ in _RATES)
        no_place = (
            f" ({row.without_place} of them can have no place there, as their topics have more than {self.cutoff})"
        )
        yield (
            f"{row.run}: of the {counted(row.returned, 'document')} among the first {self.cutoff} of"
            f" {counted(row.n, 'topic')}, {wrong} are judged not relevant and {unknown} are not judged. Of"
            f" {counted(row.relevant, 'relevant document')} {lacking} are not among them: {row.low} stand lower,"
            f" {row.missed} were not returned{no_place if row.without_place else ''}."
        )
        slices = [part for part in self.rates if part.run == row.run and part.slice and not part.small]
        worst: list[str] = []
        for count, rate, total, what in _RATES if len(slices) > 1 else ():
            part = max(slices, key=lambda part: (getattr(part, count) > 0, getattr(part, rate)))
            if getattr(part, count):
                counts = f"{getattr(part, count)} of {getattr(part, total)}, {counted(part.n, 'topic')}"
                worst.append(f"of {what.format(self.cutoff)} in {part.slice} ({counts})")
        if worst:  # not tested, so where to look and no finding
            yield (
                f"{row.run}, slices with enough topics: the highest share {', '.join(worst)}. That is where to look"
                " first; it was not tested."
            )


def _rates_table(rates: Sequence[ReviewRates], cutoff: int) -> Table:
    """Lay out counts and rates, one row per run and slice."""
    named = Show(lambda name: name or "all", "string")
    few = ["(few topics)" if row.small else "" for row in rates]
    sliced = any(row.slice for row in rates)
    columns = [
        *columns_of(rates, ("run", TEXT)),
        Column("slice", [row.slice for row in rates], named, beside=few, only="" if sliced else "data"),
        *columns_of(rates, "small", ("n", COUNT, "topics"), ("returned", COUNT, f"first {cutoff}")),
    ]
    titles = "false positive", "unjudged", f"not in first {cutoff}"
    for (name, rate, *_), title in zip(_RATES, titles, strict=True):
        columns += columns_of(rates, ("relevant", COUNT)) if name == "false_negatives" else ()
        shares = [_percent(getattr(row, rate)).strip() for row in rates]
        columns.append(Column(name, [getattr(row, name) for row in rates], COUNT, title, beside=shares))
        columns += columns_of(rates, rate)
    columns += columns_of(rates, ("low", COUNT), ("missed", COUNT), "without_place")
    return Table("rates", tuple(columns), labels=1 + sliced)


def _percent(rate: float) -> str:
    return "" if math.isnan(rate) else f" ({rate:.1%})"
