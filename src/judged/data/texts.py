"""Titles and texts of documents. Only the requested documents are kept in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import arrow_table, parquet_batches
from judged.data.column_names import known_names
from judged.data.compute import pc
from judged.data.datasets import dataset_documents, is_dataset
from judged.data.index import id_text
from judged.data.json_rows import load_json, parse_json
from judged.data.text_folders import folder_texts, is_trec, trec_documents
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_IDS, _TITLES, _TEXTS = (known_names("documents")[name] for name in ("doc_id", "title", "text"))
_ID_FIELD = re.compile(
    rb'"(?:' + "|".join(_IDS).encode() + rb')"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",{}\[\]]+))', re.IGNORECASE
)
# Positions of id, title and text by the number of columns; 4 is the layout of MS MARCO documents: id, url, title, text.
_COLUMNS_WITHOUT_HEADER = {2: (0, None, 1), 3: (0, 1, 2), 4: (0, 2, 3)}
_MAX_ROW_BYTES = 1 << 26
_MAX_CAPTION = 500  # characters
_FIX = "use columns named doc_id, title and text"


class Text(NamedTuple):
    """Title and text of a document."""

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Texts:
    """Titles and texts by document id. Immutable.

    Parameters
    ----------
    documents
        Title and text by document id.
    where
        Source of the texts in error messages.

    Examples
    --------
    >>> texts = Texts.of({"d1": "Peace at last", "d2": {"title": "Income tax", "text": "How it is paid. And when."}})
    >>> texts.text("d1"), texts.title("d1"), texts.title("d2"), "d3" in texts
    ('Peace at last', '', 'Income tax', False)
    >>> texts.snippet("d2", 30)
    'Income tax: How it is paid...'
    """

    documents: Mapping[str, Text]
    where: str = "<texts>"

    @classmethod
    def read(cls, path: str | Path, doc_ids: Collection[str] | None = None) -> Self:
        """Read documents: JSONL, JSON, CSV, TSV, Parquet, Arrow or TREC's ``<DOC>``, compressed or not, or a folder.

        Columns are detected by their usual names: ``doc_id``, ``docno``, ``_id``, ``id``...; ``title``; ``text``,
        ``body``, ``contents``... A TSV without a header has the columns id and text; id, title and text; or id, url,
        title and text. If an id appears twice, the first document is kept.

        If a folder has a ``corpus.jsonl``, as in the BEIR layout, only this file is read. Otherwise all files below
        the folder are read, except hidden ones. A file in a format above holds documents. Any other file is one
        document, whose id is its path in the folder without file extensions.

        The documents of a dataset of ir_datasets are read from its address, such as ``irds:beir/scifact``.

        Parameters
        ----------
        path
            The file or folder.
        doc_ids
            The ids of the documents to keep; all for None. Other documents are skipped before parsing if possible.

        Raises
        ------
        InputError
            If the file cannot be read, or has no column of ids or of texts; if a folder has no files, files that are
            not text, or two files with the same id.
        """
        selected = None if doc_ids is None else frozenset(doc_ids)
        documents: dict[str, Text] = {}
        for doc, text in document_rows(path, selected):
            if (selected is None or doc in selected) and doc not in documents:
                documents[doc] = text
        return cls(documents, str(path))

    @classmethod
    def of(cls, data: Any, doc_ids: Collection[str] | None = None) -> Self:
        """Create from a path, ``{doc_id: text}`` or ``{doc_id: {"title": ..., "text": ...}}``.

        Raises
        ------
        InputError
            If `data` is none of these.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)) or is_dataset(data):
            return cls.read(data, doc_ids)
        if isinstance(data, Mapping):
            rows = ((id_text(doc, "document id"), text) for doc, text in cast("Mapping[Any, Any]", data).items())
            return cls({doc: _parse_text(text) for doc, text in rows if doc_ids is None or doc in doc_ids})
        problem = f"documents must be a path or a dict, got {type(data).__name__}"
        raise InputError(problem, fix='use a file or {"d1": "the text"}')

    def title(self, doc_id: str) -> str:
        """Return the title of a document; ``""`` if it has no title or is not in the collection."""
        return self.documents.get(doc_id, _NO_TEXT).title

    def text(self, doc_id: str) -> str:
        """Return the text of a document; ``""`` if it is not in the collection."""
        return self.documents.get(doc_id, _NO_TEXT).text

    def snippet(self, doc_id: str, length: int = 160) -> str:
        """Return title and text in one line of at most `length` characters, cut between words."""
        title, text = (" ".join(part.split()) for part in self.documents.get(doc_id, _NO_TEXT))
        starts_with_title = text[: len(title)].casefold() == title.casefold()
        return shorten(text if starts_with_title else f"{title}: {text}" if text else title, length)

    def caption(self, doc_id: str) -> str:
        """Return the title in one line, or the text if there is no title; ``""`` for an unknown document.

        >>> Texts.of({"d1": {"title": "", "text": "Cats  sleep."}}).caption("d1")
        'Cats sleep.'
        """
        title, text = self.documents.get(doc_id, _NO_TEXT)
        return " ".join((title.strip() or text)[: 4 * _MAX_CAPTION].split())[:_MAX_CAPTION]

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.documents

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"Texts({len(self)} documents of {self.where})"


_NO_TEXT = Text("", "")


def shorten(text: str, length: int) -> str:
    """Shorten a line to at most `length` characters, cut between words.

    >>> shorten("how income tax is paid", 16), shorten("income tax", 16), shorten("antidisestablishment", 9)
    ('how income...', 'income tax', 'antidi...')
    """
    if len(text) <= length:
        return text
    truncated = text[: max(length - 3, 0)]
    head = truncated if text[len(truncated)].isspace() or " " not in truncated else truncated.rsplit(" ", 1)[0]
    return f"{head.rstrip(' ,;:.')}..."[: max(length, 0)]


def document_rows(path: str | Path, doc_ids: frozenset[str] | None = None) -> Iterator[tuple[str, Text]]:
    """Yield id and text of each document that `Texts.read` accepts, including duplicates.

    Raises
    ------
    InputError
        As for `Texts.read`.
    """
    if is_dataset(path):
        yield from ((doc, Text(title, text)) for doc, title, text in dataset_documents(path, doc_ids))
        return
    file = files.local(path)
    yield from _in_folder(file, doc_ids) if files.exists(file) and file.is_dir() else _read(file, str(path), doc_ids)


def document_ids(path: str | Path) -> list[str]:
    """Read document ids from any input of `Texts.read`, or from a text file with one id on each line.

    Raises
    ------
    InputError
        As for `Texts.read`, or if a line holds more than one id.
    """
    file = files.local(path)
    if not file.is_dir():
        head = files.head(file)
        first_line = head.lstrip().partition(b"\n")[0].decode(errors="replace").rstrip("\r")
        has_header = any(sep in first_line and _first_known(first_line.split(sep), _IDS) for sep in "\t,")
        if not (has_header or is_trec(head) or head.lstrip().startswith((b"{", b"[", b"PAR1", b"ARROW1"))):
            return _id_list(file, str(path))
    return [doc for doc, _ in document_rows(file)]


def _id_list(file: Path, where: str) -> list[str]:
    ids = [line.strip() for line in files.text(file, where).split("\n")]
    for number, doc_id in enumerate(ids, 1):
        if len(doc_id.split()) > 1:
            problem = f"a line must hold one id, got {doc_id!r:.40}"
            raise InputError(problem, fix="write one id on each line, or use a documents file", path=where, line=number)
    return list(filter(None, ids))


def _in_folder(folder: Path, doc_ids: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    for path, doc, text in folder_texts(folder, doc_ids):
        if doc:
            yield doc, Text("", text)
        else:
            yield from _read(path, str(path), doc_ids)


def _read(file: Path, where: str, doc_ids: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    try:
        yield from _rows(file, where, doc_ids)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"the documents cannot be read ({error})", fix=_FIX, path=where) from None


def _rows(file: Path, where: str, doc_ids: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    head = files.head(file)
    first_line, newline, following = head.lstrip().partition(b"\n")
    is_single_line = not following.strip() and ".json" in Path(where).suffixes  # as json.dump writes it
    if head.startswith(b"PAR1"):
        return _batches(parquet_batches(file, where, partial(_used_columns, where=where)), where, doc_ids)
    if head.startswith(b"ARROW1"):
        return _batches(arrow_table(file, where).to_batches(), where, doc_ids)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("this is UTF-16 (Windows PowerShell writes it)", fix="save the file as UTF-8", path=where)
    if is_trec(head):
        return ((doc, Text(title, text)) for doc, title, text in trec_documents(file, where))
    is_multiline = bool(newline) and not first_line.rstrip().endswith(b"}")
    if first_line.startswith(b"[") or (first_line.startswith(b"{") and (is_single_line or is_multiline)):
        return _json(file, where)
    if first_line.startswith(b"{"):
        return _jsonl(file, where, doc_ids)
    return _tsv(file, where) if b"\t" in first_line else _csv(file, where, doc_ids)


def _jsonl(file: Path, where: str, doc_ids: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    """Read one document per line, skipping lines whose id is not wanted before parsing them."""
    ids = None if doc_ids is None else {doc.encode() for doc in doc_ids}
    number = 0
    for block in files.blocks(file):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if not line.strip() or (ids is not None and not _may_be_wanted(line, ids)):
                continue
            yield _parse_record(parse_json(line, where, number), where, number)


def _may_be_wanted(line: bytes, ids: set[bytes]) -> bool:
    matches = _ID_FIELD.findall(line)
    return not matches or any(quoted in ids or bare in ids or b"\\" in quoted for quoted, bare in matches)


def _json(file: Path, where: str) -> Iterator[tuple[str, Text]]:
    data: Any = load_json(file, where)
    if isinstance(data, dict):
        for doc, text in cast("dict[str, Any]", data).items():
            yield doc, _parse_text(text, where)
    elif isinstance(data, list):
        for record in cast("list[Any]", data):
            yield _parse_record(record, where, None)
    else:
        raise InputError("this JSON contains no documents", fix='write {"d1": "the text"}', path=where)


def _parse_record(record: Any, where: str, line: int | None) -> tuple[str, Text]:
    fields = cast("Mapping[str, Any]", record) if isinstance(record, Mapping) else {}
    id_field = _first_known(fields, _IDS)
    if id_field is None:
        problem = f"{record!r:.60} is not a document with an id"
        raise InputError(problem, fix='write {"doc_id": ..., "text": ...}', path=where, line=line)
    return id_text(fields[id_field], "document id", path=where, line=line), _parse_text(fields)


def _field_text(fields: Mapping[str, Any], known_names: tuple[str, ...]) -> str:
    """Return the first field with a known name as text; some collections store a text as a list of paragraphs."""
    name = _first_known(fields, known_names)
    value: Any = "" if name is None else fields[name]
    text = "\n".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return text.encode(errors="replace").decode()  # an unpaired surrogate cannot be printed


def _parse_text(document: Any, where: str = "<texts>") -> Text:
    if isinstance(document, str):
        return Text("", document)
    if isinstance(document, Mapping):
        fields = cast("Mapping[str, Any]", document)
        return Text(_field_text(fields, _TITLES), _field_text(fields, _TEXTS))
    problem = f"a document must be text or an object, got {document!r:.40}"
    raise InputError(problem, fix='use "the text", or {"title": ..., "text": ...}', path=where)


def _first_known(names: Iterable[str], known_names: tuple[str, ...]) -> str | None:
    by_normalized = {name.strip().strip('"').lower().replace("-", "_"): name for name in names}
    return next((by_normalized[name] for name in known_names if name in by_normalized), None)


def _text_columns(names: list[str], where: str) -> tuple[str, str | None, str | None]:
    """Return the column names of id, title and text; either title or text may be missing."""
    doc, title, text = (_first_known(names, known_names) for known_names in (_IDS, _TITLES, _TEXTS))
    if doc is None or (title is None and text is None):
        missing = "document id" if doc is None else "text"
        raise InputError(f"no {missing} among the columns {', '.join(names)[:80]}", fix=_FIX, path=where)
    return doc, title, text


def _tsv(file: Path, where: str) -> Iterator[tuple[str, Text]]:
    positions: tuple[int, int | None, int | None] | None = None
    width = number = 0
    for block in files.blocks(file):
        for line in block.decode().removesuffix("\n").split("\n"):
            number += 1
            row = line.removesuffix("\r").split("\t")
            if positions is None:
                names, width = row, len(row)
                positions = _positions(names, where)
                if _first_known(names, _IDS) is not None:
                    continue
            if not line.strip():
                continue
            if len(row) != width:
                problem = f"each line must have {width} fields like the first, got {len(row)}"
                raise InputError(problem, fix="write the same fields in all lines", path=where, line=number)
            doc, title, text = positions
            yield row[doc], Text("" if title is None else row[title], "" if text is None else row[text])


def _positions(names: list[str], where: str) -> tuple[int, int | None, int | None]:
    if _first_known(names, _IDS) is None and len(names) in _COLUMNS_WITHOUT_HEADER:
        return _COLUMNS_WITHOUT_HEADER[len(names)]
    doc, title, text = _text_columns(names, where)
    return names.index(doc), None if title is None else names.index(title), None if text is None else names.index(text)


def _csv(file: Path, where: str, doc_ids: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    from pyarrow import csv

    header = files.head(file).decode(errors="replace").split("\n", 1)[0].rstrip("\r").split(",")
    names = [name.strip('"') for name in header]
    columns = _text_columns(names, where)
    used = _used_columns(names, where)
    with files.opened(file) as stream:
        reader = csv.open_csv(
            pa.PythonFile(stream, "r"),
            read_options=csv.ReadOptions(block_size=_MAX_ROW_BYTES),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(used, pa.string()), include_columns=used),
        )
        for batch in reader:
            yield from _batch_documents(batch, columns, doc_ids)


def _used_columns(names: list[str], where: str) -> list[str]:
    return [name for name in _text_columns(names, where) if name is not None]


def _batches(batches: Iterable[Any], where: str, doc_ids: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    for batch in batches:
        yield from _batch_documents(batch, _text_columns(batch.schema.names, where), doc_ids)


def _batch_documents(
    batch: Any, columns: tuple[str, str | None, str | None], doc_ids: frozenset[str] | None
) -> Iterator[tuple[str, Text]]:
    ids = pc.cast(batch.column(columns[0]), pa.string())
    if doc_ids is not None:
        is_selected = pc.is_in(ids, value_set=pa.array(sorted(doc_ids), pa.string()))
        batch, ids = batch.filter(is_selected), ids.filter(is_selected)
    blank = [""] * len(ids)
    titles, texts = (blank if name is None else batch.column(name).to_pylist() for name in columns[1:])
    for doc, title, text in zip(ids.to_pylist(), titles, texts, strict=True):
        yield doc, Text(str(title or ""), str(text or ""))
