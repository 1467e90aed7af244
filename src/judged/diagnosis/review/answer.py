"""Result of `review`: labels to review, sorted by their effect, and error rates; and how to apply new grades."""

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
from judged.data.texts import Text, Texts, shorten
from judged.errors import InputError
from judged.results import Answer, Column, Sentences, Table
from judged.results.decimals import counted, read_number
from judged.results.escaping import csv_lines
from judged.results.table import ANY, CHANGE, COUNT, TEXT, Show, columns_of, significant, truncated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance


_FORM_COLUMNS = ("query_id", "doc_id", "relevance", "new_grade", "query", "title", "text")
_REQUIRED_COLUMNS = ("query_id", "doc_id", "new_grade")
_MAX_TEXT = 1000  # characters of a text in a form; spreadsheets limit the length of a cell
_FIX = "use the output of ReviewList.tsv(), with the columns query_id, doc_id, relevance, new_grade"
_FIX_QRELS = "use the qrels that the list was created from"


def format_review_form(items: Iterable[ReviewItem]) -> str:
    """Format judgments as TSV with an empty column for the new grade. Texts of documents are shortened."""
    rows: list[Sequence[str]] = [_FORM_COLUMNS]
    for item in items:
        query, title, text = (" ".join(part.split()) for part in (item.query, item.title, item.text))
        grade = "" if item.grade is None else str(int(item.grade)) if item.grade.is_integer() else repr(item.grade)
        rows.append([item.query_id, item.doc_id, grade, "", query, title, shorten(text, _MAX_TEXT)])
    return csv_lines(rows, "\t")


class _ReviewedLabel(NamedTuple):
    """Row with a new grade."""

    query_id: str
    doc_id: str
    relevance: str | None  # old grade as text, empty if unjudged; None without this column
    new_grade: float
    line: int | None


def apply_review(qrels: Any, reviewed: Any) -> Qrels:
    """Return judgments with the new grades of a reviewed list.

    Parameters
    ----------
    qrels
        Judgments that the list was created from, as for `Qrels.of`. They are not modified.
    reviewed
        Output of `ReviewList.tsv` with numbers in the column ``new_grade``, also as CSV; or a data frame, or a list of
        dicts with these columns. Rows without a new grade are ignored.

    Returns
    -------
    Qrels
        In the same order, followed by the documents that were unjudged.

    Raises
    ------
    InputError
        If no grade is filled in, a grade is not a number, a row does not match the judgments (unknown topic, or another
        old grade), a document is listed twice with different grades, or a document has several labels.

    Examples
    --------
    >>> reviewed = [{"query_id": "q", "doc_id": "b", "relevance": 0, "new_grade": 2},
    ...             {"query_id": "q", "doc_id": "x", "relevance": None, "new_grade": 1}]
    >>> apply_review({"q": {"a": 1, "b": 0}}, reviewed).table.to_pydict()["relevance"]
    [1.0, 2.0, 1.0]
    """
    old_qrels = Qrels.of(qrels)
    source = str(reviewed) if isinstance(reviewed, (str, Path)) else "<reviewed>"
    index, old_table = old_qrels.index, old_qrels.table
    if old_table.num_rows > len(index.topic):
        problem = (
            "some documents have several labels (subtopics, assessors), but a review has one new grade per document"
        )
        raise InputError(problem, fix="review each subtopic or assessor separately", path=old_qrels.where)
    labels = _read_reviewed(reviewed, source)
    for label in labels.values():
        if label.query_id not in index.codes:
            problem = f"the qrels have no topic {label.query_id!r}"
            raise InputError(problem, fix=_FIX_QRELS, path=source, line=label.line)
    codes = np.array([index.codes[query] for query, _ in labels], dtype=np.int64)
    rows = index.rows_of(codes, pa.array([doc for _, doc in labels], pa.string())).tolist()
    for label, row in zip(labels.values(), rows, strict=True):
        _check_old_grade(label, None if row < 0 else float(index.grade[row]), source)
    new_grades = {key: label.new_grade for key, label in labels.items()}
    keys = zip(old_table["query_id"].to_pylist(), old_table["doc_id"].to_pylist(), strict=True)
    grades = [new_grades.get(key, grade) for key, grade in zip(keys, old_table["relevance"].to_pylist(), strict=True)]
    table = old_table.set_column(old_table.column_names.index("relevance"), "relevance", pa.array(grades, pa.float64()))
    added = [(*key, new_grades[key], "0") for key, row in zip(labels, rows, strict=True) if row < 0]
    names = ("query_id", "doc_id", "relevance", "iteration")
    columns = dict(zip(names, zip(*added, strict=True) if added else [()] * 4, strict=True))
    added_table = pa.table({name: pa.array(columns[name], old_table[name].type) for name in old_table.column_names})
    return Qrels(pa.concat_tables([table, added_table]), old_qrels.name, old_qrels.where, origin=old_qrels.origin)


def _read_reviewed(reviewed: Any, source: str) -> dict[tuple[str, str], _ReviewedLabel]:
    """Read the rows with a new grade."""
    labels: dict[tuple[str, str], _ReviewedLabel] = {}
    for line, row in records_of(reviewed, source, "reviewed labels", _FIX):
        if lacking := [name for name in _REQUIRED_COLUMNS if name not in row]:
            raise InputError(f"no column {lacking[0]}", fix=_FIX, path=source, line=line)
        if not _cell_text(row["new_grade"]):
            continue
        query = id_text(row["query_id"], "query id", path=source, line=line)
        doc = id_text(row["doc_id"], "document id", path=source, line=line)
        old_grade = _cell_text(row["relevance"]) if "relevance" in row else None
        label = _ReviewedLabel(query, doc, old_grade, _parse_grade(row["new_grade"], source, line), line)
        first_label = labels.setdefault((query, doc), label)
        if first_label.new_grade != label.new_grade:
            grades = f"{first_label.new_grade:g} and {label.new_grade:g}"
            problem = f"document {doc} of topic {query} has two new grades, {grades}"
            raise InputError(problem, fix="keep one of the two grades", path=source, line=line)
    if not labels:
        raise InputError("no new grade is filled in", fix="enter grades in the column new_grade", path=source)
    return labels


def _parse_grade(text: Any, source: str, line: int | None) -> float:
    try:
        value = read_number(text)
    except ValueError as error:
        raise InputError(f"the new grade {text!r:.60} {error}", fix="use 0, 1 or 2", path=source, line=line) from None
    if math.isinf(value):
        raise InputError(f"the new grade {text!r} is infinite", fix="use 0, 1 or 2", path=source, line=line)
    return value


def _cell_text(value: Any) -> str:
    """Return the text of a cell, stripped; empty for None and NaN."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value).strip()


def _check_old_grade(label: _ReviewedLabel, qrels_grade: float | None, source: str) -> None:
    """Raise InputError if the row was created from other judgments."""
    if label.relevance is None:
        return
    try:
        listed_grade = read_number(label.relevance) if label.relevance else None
    except ValueError:
        listed_grade = math.nan
    if qrels_grade != listed_grade:
        in_list, in_qrels = ("none" if grade is None else f"{grade:g}" for grade in (listed_grade, qrels_grade))
        document = f"document {label.doc_id} of topic {label.query_id}"
        problem = f"{document} has grade {in_list} in the list, but {in_qrels} in the qrels"
        raise InputError(problem, fix=_FIX_QRELS, path=source, line=label.line)


ReviewKind: TypeAlias = Literal["false positive", "false negative", "unjudged"]
KINDS: tuple[ReviewKind, ...] = get_args(ReviewKind)

_MAX_RUNS = 4  # with more runs, the columns and sentences about single runs are omitted
_MAX_SNIPPET = 200  # characters of the text of a document
_RATE_COLUMNS = (
    ("false_positives", "false_positive_rate", "returned", "documents judged not relevant"),
    ("unjudged", "unjudged_rate", "returned", "documents that are not judged"),
    ("false_negatives", "miss_rate", "relevant", "relevant documents not in the top {}"),
)  # attributes: count, rate, and denominator; description
_BIAS_WARNING = (
    "The list contains only labels that may lower the score of at least one of the runs in this review. If only the"
    " listed labels are judged again, the scores of the runs in this review may rise compared with all other runs."
    " Judge the list without knowing runs and ranks (the TSV form hides runs and ranks), and score all runs with"
    " the new judgments."
)


@dataclass(frozen=True)
class ReviewItem:
    """Label of a document to review."""

    query_id: str
    doc_id: str
    # `false positive`: in the top k of a run, and judged not relevant; `false negative`: relevant, and not in the top k
    # of every run; `unjudged`: in the top k of a run, and unjudged
    kind: ReviewKind
    grade: float | None  # None: unjudged
    other_grade: float  # grade that `change` assumes: 0 for a false negative, else the highest grade
    ranks: Mapping[str, int | None]  # by run; None: not returned
    # by run: change of its score on the topic by the other grade; NaN if a score is undefined
    change: Mapping[str, float]
    difference: float | None = None  # change of the second run's difference from the first; None for one run
    reverses_order: bool = False  # whether the change reverses the order of the first two runs on the topic
    slices: tuple[str, ...] = ()  # slices of the topic
    # query, title, text: empty if unknown
    query: str = ""
    title: str = ""
    text: str = ""

    @property
    def missed(self) -> tuple[str, ...]:
        """Runs that did not return the document."""
        return tuple(run for run, rank in self.ranks.items() if rank is None)

    @property
    def largest(self) -> float:
        """Largest change, in either direction."""
        return max((value for value in self.change.values() if not math.isnan(value)), key=abs, default=math.nan)


@dataclass(frozen=True)
class ReviewRates:
    """Counts of documents in the top k of a run, and of relevant documents outside of it."""

    run: str
    slice: str  # empty: all topics
    n: int  # number of topics
    small: bool  # whether the slice has too few topics for a sentence about it
    returned: int  # number of documents in the top k
    # false_positives, unjudged: documents in the top k that are judged not relevant, and unjudged
    false_positives: int
    unjudged: int
    relevant: int  # number of relevant documents in the qrels
    # ranked_lower, not_returned: relevant documents below rank k, and not returned
    ranked_lower: int
    not_returned: int
    unreachable: int  # relevant documents that cannot be in the top k, because their topic has more than k

    @property
    def false_negatives(self) -> int:
        """Number of relevant documents outside of the top k."""
        return self.ranked_lower + self.not_returned

    @property
    def false_positive_rate(self) -> float:
        """Share of the top k documents that are judged not relevant; NaN without documents."""
        return _share(self.false_positives, self.returned)

    @property
    def unjudged_rate(self) -> float:
        """Share of the top k documents that are unjudged."""
        return _share(self.unjudged, self.returned)

    @property
    def miss_rate(self) -> float:
        """Share of the relevant documents outside of the top k; NaN if there are none."""
        return _share(self.false_negatives, self.relevant)


def _share(count: int, total: int) -> float:
    return count / total if total else math.nan


@dataclass(frozen=True, eq=False, repr=False)
class ReviewList(Answer):
    """Result of `review`: labels to review, sorted by their effect, and error rates.

    Attributes
    ----------
    measure : str
        Name of the measure.
    cutoff : int
        Depth k of the top of each run.
    rel, highest : float
        Lowest relevant grade, and the grade assumed for false positives and unjudged documents.
    runs, kinds : tuple of str
        Names of the runs, and the listed kinds.
    items : tuple of ReviewItem
        Labels to review.
    counts_by_kind : dict of str to int
        Number of labels of each kind, listed or not.
    n_reversed : int
        Number of labels that would reverse the order of the first two runs on their topic.
    rates : tuple of ReviewRates
        By run and slice.
    provenance : Provenance
        Judgments, runs and policies.
    notes : tuple of Note
        Warnings about the runs.

    Examples
    --------
    >>> from judged import review
    >>> result = review({"q": {"a": 2, "b": 0, "c": 1}}, {"q": ["b", "x", "a"]}, measure="nDCG@2")
    >>> print(result.table().text())
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
    counts_by_kind: Mapping[ReviewKind, int]
    n_reversed: int
    rates: tuple[ReviewRates, ...]
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Measure by which labels are sorted."""
        return f"Labels to review, by {self.measure}"

    def facts(self) -> dict[str, Any]:
        """Return the options, and the number of labels of each kind."""
        facts = {name: getattr(self, name) for name in ("measure", "cutoff", "rel", "highest", "kinds")}
        return facts | {"counts": self.counts_by_kind, "n_reversed": self.n_reversed}

    def blocks(self) -> tuple[Block, ...]:
        """Return rates, items with texts, and sentences."""
        return _rates_table(self.rates, self.cutoff), self._items(), Sentences(self.sentences)

    def _items(self) -> Table:
        """Return a table with one row per item. With many runs, it prints a summary of them."""
        items, single, has_run_columns = self.items, len(self.runs) == 1, len(self.runs) <= _MAX_RUNS
        has_slices, grade = any(item.slices for item in items), significant()
        columns = [*columns_of(items, ("query_id", TEXT, "topic"), ("doc_id", TEXT, "document"), ("kind", TEXT))]
        columns += columns_of(items, ("slices", ANY) if has_slices else "slices")
        snippets = [Texts({"": Text(item.title, item.text)}).snippet("", _MAX_SNIPPET) for item in items]
        query_column = Column("query", [item.query for item in items], truncated(120), below=True)
        snippet_column = Column("snippet", snippets, TEXT, "text", only="people", below=True)
        text_columns = [column for column in (query_column, snippet_column) if any(column.values)]
        columns += [*text_columns, *columns_of(items, ("grade", grade), ("other_grade", grade, "other"))]
        for name, show, key in (("rank", COUNT, "ranks"), ("change", CHANGE, "change")):
            for run in self.runs:
                values = [getattr(item, key)[run] for item in items]
                heading = name if single else f"{name} {run}"
                columns.append(Column(f"{name} {run}", values, show, heading, only="" if has_run_columns else "data"))
        if not has_run_columns:
            in_top = [sum(rank is not None and rank <= self.cutoff for rank in item.ranks.values()) for item in items]
            run_texts = [f"{count} of {counted(len(self.runs), 'run')}" for count in in_top]
            columns.append(Column("shown", run_texts, TEXT, f"in the top {self.cutoff}", only="people"))
            columns.append(Column("largest", [item.largest for item in items], CHANGE, "largest change", only="people"))
        yes = Show(lambda is_true: "yes" if is_true else "", "bool")
        formats = ("difference", "reverses_order") if single else (("difference", CHANGE), ("reverses_order", yes))
        columns += columns_of(items, *formats)
        columns += columns_of(items, *(() if query_column in text_columns else ("query",)), "title", "text", "missed")
        return Table("items", tuple(columns), labels=3 + has_slices + len(text_columns))

    def jsonl(self) -> str:
        """Render the items as JSON Lines, in full precision and with full texts."""
        return "\n".join(json.dumps(record, ensure_ascii=False) for record in self.table().records())

    def tsv(self) -> str:
        """Render a form for new grades, which `apply_review` reads.

        It contains no runs, ranks or changes, so that judges do not know the effect of a label.
        """
        return format_review_form(self.items)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Counts and rates, the meaning of the changes, and the limits of the conclusions."""
        overall = [row for row in self.rates if not row.slice]
        described = overall if len(overall) <= _MAX_RUNS else overall[:2]
        texts = [text for row in described for text in self._rate_sentences(row)]
        if len(overall) > _MAX_RUNS:
            texts.append(f"The {counted(len(overall) - 2, 'other run is', 'other runs are')} in the table of rates.")
        kinds = ((kind, self.counts_by_kind[kind]) for kind in self.kinds)
        counts = ", ".join(f"{n} unjudged" if kind == "unjudged" else counted(n, kind) for kind, n in kinds)
        count, has_several_runs = len(self.items), len(self.runs) > 1
        is_limited = count < sum(map(self.counts_by_kind.__getitem__, self.kinds))
        listed = f"; the {count} most informative are listed" if is_limited else ""
        of_runs = ", for at least one run" if has_several_runs else ""
        texts.append(f"Labels to review, one per topic and document{of_runs}: {counts}{listed}.")
        if has_several_runs:
            first, second = self.runs[:2]
            texts.append(
                f"Labels that, with another grade, would reverse the order of {first} and {second} by {self.measure} on"
                f" the topic of the label: {self.n_reversed:,}{'; listed first' if self.n_reversed else ''}."
                f" The column `difference` shows the change of the difference, {second} minus {first}."
            )
        texts.append(
            f"The column `change` shows how the topic's {self.measure} changes if the label gets another grade:"
            f" {self.highest:g} for documents that are not relevant or not judged, and 0 for relevant documents."
            " The change is not the probability of an error."
        )
        return (*texts, _BIAS_WARNING)

    def _rate_sentences(self, row: ReviewRates) -> Iterator[str]:
        """Yield the counts of a run, and the slices with the highest rates among those with enough topics."""
        counts = [f"{getattr(row, count)}{_percent(getattr(row, rate))}" for count, rate, *_ in _RATE_COLUMNS]
        wrong, unjudged, missing = counts
        reason = f"because their topics have more than {self.cutoff} relevant documents"
        unreachable = f" {row.unreachable} relevant documents cannot be in the top {self.cutoff}, {reason}."
        yield (
            f"{row.run}: of the {counted(row.returned, 'document')} in the top {self.cutoff} of"
            f" {counted(row.n, 'topic')}, {wrong} are judged not relevant and {unjudged} are not judged. Of"
            f" {counted(row.relevant, 'relevant document')}, {missing} are not in the top {self.cutoff}:"
            f" {row.ranked_lower} are ranked lower, and {row.not_returned} were not returned."
            f"{unreachable if row.unreachable else ''}"
        )
        slices = [part for part in self.rates if part.run == row.run and part.slice and not part.small]
        highest: list[str] = []
        for count, rate, total, description in _RATE_COLUMNS if len(slices) > 1 else ():
            part = max(slices, key=lambda part: (getattr(part, count) > 0, getattr(part, rate)))
            if getattr(part, count):
                counts = f"{getattr(part, count)} of {getattr(part, total)}, {counted(part.n, 'topic')}"
                highest.append(f"the highest share of {description.format(self.cutoff)} is in {part.slice} ({counts})")
        if highest:  # not tested, so no claim about these slices
            yield (
                f"{row.run}: among slices with enough topics, {'; '.join(highest)}. Differences"
                " between slices were not tested for significance."
            )


def _rates_table(rates: Sequence[ReviewRates], cutoff: int) -> Table:
    """Return a table of counts and rates with one row per run and slice."""
    slice_format = Show(lambda name: name or "all", "string")
    marks = ["(few topics)" if row.small else "" for row in rates]
    has_slices = any(row.slice for row in rates)
    columns = [
        *columns_of(rates, ("run", TEXT)),
        Column("slice", [row.slice for row in rates], slice_format, details=marks, only="" if has_slices else "data"),
        *columns_of(rates, "small", ("n", COUNT, "topics"), ("returned", COUNT, f"top {cutoff}")),
    ]
    titles = "false positive", "unjudged", f"not in top {cutoff}"
    for (name, rate, *_), title in zip(_RATE_COLUMNS, titles, strict=True):
        columns += columns_of(rates, ("relevant", COUNT)) if name == "false_negatives" else ()
        shares = [_percent(getattr(row, rate)).strip() for row in rates]
        columns.append(Column(name, [getattr(row, name) for row in rates], COUNT, title, details=shares))
        columns += columns_of(rates, rate)
    columns += columns_of(
        rates, ("ranked_lower", COUNT, "ranked lower"), ("not_returned", COUNT, "not returned"), "unreachable"
    )
    return Table("rates", tuple(columns), labels=1 + has_slices)


def _percent(rate: float) -> str:
    return "" if math.isnan(rate) else f" ({rate:.1%})"
