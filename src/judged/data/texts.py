"""The titles and texts of documents, for lists that people read. Only those that are wanted are kept in memory."""

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
from judged.data.compute import pc
from judged.data.index import id_text
from judged.data.json_rows import load, parse_json
from judged.data.text_folders import folder_texts, is_trec, trec_documents
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_IDS = ("doc_id", "docid", "docno", "document_id", "passage_id", "item_id", "corpus_id", "pid", "did", "_id", "id")
_TITLES = ("title", "headline", "name")
_TEXTS = ("text", "body", "contents", "content", "passage", "abstract", "description")
_ID_FIELD = re.compile(
    rb'"(?:' + "|".join(_IDS).encode() + rb')"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",{}\[\]]+))', re.IGNORECASE
)
_UNNAMED = {2: (0, None, 1), 3: (0, 1, 2), 4: (0, 2, 3)}  # the last: id, url, title, text, as MS MARCO writes documents
_LONGEST = 1 << 26  # bytes of one row of a CSV
_CAPTION = 500  # characters: more is not a caption
_FIX = "name columns doc_id, title and text"


class Text(NamedTuple):
    """What a document says."""

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Texts:
    """Titles and texts by document id. Immutable.

    Parameters
    ----------
    documents
        Title and text by id.
    where
        The path they came from.

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
    def read(cls, path: str | Path, wanted: Collection[str] | None = None) -> Self:
        """Read documents: JSONL, JSON, CSV, TSV, Parquet, Arrow or TREC's ``<DOC>``, compressed or not, or a folder.

        Columns are found by their usual names: ``doc_id``, ``docno``, ``_id``, ``id``...; ``title``; ``text``,
        ``body``, ``contents``... A TSV without names has id and text, or id, title and text, or id, url, title and
        text. Of a document that appears in it twice the first is kept.

        A folder that has a ``corpus.jsonl``, as BEIR's have, is that file. In any other each file is read, below it
        too: one in a format above holds documents, and any other file is one document, whose id is its path in the
        folder without the endings of its name. Hidden files are left out.

        Parameters
        ----------
        path
            The file or folder.
        wanted
            The ids of the documents to keep; all for None. The others are not even parsed, where that can be seen.

        Raises
        ------
        InputError
            If the file cannot be read so, or has no column of ids or of texts; if a folder has no file, files that
            are not text, or two of one id.
        """
        kept = None if wanted is None else frozenset(wanted)
        found: dict[str, Text] = {}
        for doc, text in document_rows(path, kept):
            if (kept is None or doc in kept) and doc not in found:
                found[doc] = text
        return cls(found, str(path))

    @classmethod
    def of(cls, data: Any, wanted: Collection[str] | None = None) -> Self:
        """Take a path, ``{doc_id: text}`` or ``{doc_id: {"title": ..., "text": ...}}``.

        Raises
        ------
        InputError
            If it is none of these.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.read(data, wanted)
        if isinstance(data, Mapping):
            rows = ((id_text(doc, "document id"), known) for doc, known in cast("Mapping[Any, Any]", data).items())
            return cls({doc: _text(known) for doc, known in rows if wanted is None or doc in wanted})
        raise InputError(
            f"a {type(data).__name__} holds no texts of documents", fix='give a file or {"d1": "the text"}'
        )

    def title(self, doc_id: str) -> str:
        """Give the title of a document; ``""`` where it has none or is not here."""
        return self.documents.get(doc_id, _NOTHING).title

    def text(self, doc_id: str) -> str:
        """Give the text of a document; ``""`` for one that is not here."""
        return self.documents.get(doc_id, _NOTHING).text

    def snippet(self, doc_id: str, length: int = 160) -> str:
        """Give title and text in one line of at most so many characters, cut between words; ``""`` if not here."""
        title, text = (" ".join(part.split()) for part in self.documents.get(doc_id, _NOTHING))
        repeated = text[: len(title)].casefold() == title.casefold()
        return shortened(text if repeated else f"{title}: {text}" if text else title, length)

    def caption(self, doc_id: str) -> str:
        """Give the title in one line, or the text where there is none; ``""`` if it is not here.

        >>> Texts.of({"d1": {"title": "", "text": "Cats  sleep."}}).caption("d1")
        'Cats sleep.'
        """
        title, text = self.documents.get(doc_id, _NOTHING)
        return " ".join((title.strip() or text)[: 4 * _CAPTION].split())[:_CAPTION]

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.documents

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"Texts({len(self)} documents of {self.where})"


_NOTHING = Text("", "")


def shortened(text: str, length: int) -> str:
    """Cut a line between words, so that it has at most so many characters.

    >>> shortened("how income tax is paid", 16), shortened("income tax", 16), shortened("antidisestablishment", 9)
    ('how income...', 'income tax', 'antidi...')
    """
    if len(text) <= length:
        return text
    cut = text[: max(length - 3, 0)]
    head = cut if text[len(cut)].isspace() or " " not in cut else cut.rsplit(" ", 1)[0]
    return f"{head.rstrip(' ,;:.')}..."[: max(length, 0)]


def document_rows(path: str | Path, wanted: frozenset[str] | None = None) -> Iterator[tuple[str, Text]]:
    """Give id and text of one document after another, as `Texts.read` finds them, those that come twice too.

    Raises
    ------
    InputError
        As for `Texts.read`.
    """
    file = files.local(path)
    yield from _in_folder(file, wanted) if files.exists(file) and file.is_dir() else _read(file, str(path), wanted)


def document_ids(path: str | Path) -> list[str]:
    """Read the ids of documents, from whatever `Texts.read` takes, or from a list of one id a line.

    Raises
    ------
    InputError
        As for `Texts.read`, or if a line of a list holds more than an id.
    """
    file = files.local(path)
    if not file.is_dir():
        head = files.head(file)
        first = head.lstrip().partition(b"\n")[0].decode(errors="replace").rstrip("\r")
        named = any(sign in first and _first(first.split(sign), _IDS) for sign in "\t,")
        if not (named or is_trec(head) or head.lstrip().startswith((b"{", b"[", b"PAR1", b"ARROW1"))):
            return _listed(file, str(path))
    return [doc for doc, _ in document_rows(file)]


def _listed(file: Path, where: str) -> list[str]:
    ids = [line.strip() for line in files.text(file, where).split("\n")]
    for number, text in enumerate(ids, 1):
        if len(text.split()) > 1:
            fix = "write one id on each line, or give documents"
            raise InputError(f"{text!r:.40} is more than an id", fix=fix, path=where, line=number)
    return list(filter(None, ids))


def _in_folder(folder: Path, wanted: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    for path, doc, text in folder_texts(folder, wanted):
        if doc:
            yield doc, Text("", text)
        else:
            yield from _read(path, str(path), wanted)


def _read(file: Path, where: str, wanted: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    try:
        yield from _rows(file, where, wanted)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"documents cannot be read from it ({error})", fix=_FIX, path=where) from None


def _rows(file: Path, where: str, wanted: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    head = files.head(file)
    first, newline, more = head.lstrip().partition(b"\n")
    alone = not more.strip() and ".json" in Path(where).suffixes  # all in one line, as json.dump writes it
    if head.startswith(b"PAR1"):
        return _batches(parquet_batches(file, where, partial(_used, where=where)), where, wanted)
    if head.startswith(b"ARROW1"):
        return _batches(arrow_table(file, where).to_batches(), where, wanted)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("this is UTF-16 (Windows PowerShell writes it)", fix="save it as UTF-8", path=where)
    if is_trec(head):
        return ((doc, Text(title, text)) for doc, title, text in trec_documents(file, where))
    broken_up = bool(newline) and not first.rstrip().endswith(b"}")
    if first.startswith(b"[") or (first.startswith(b"{") and (alone or broken_up)):
        return _json(file, where)
    if first.startswith(b"{"):
        return _jsonl(file, where, wanted)
    return _tsv(file, where) if b"\t" in first else _csv(file, where, wanted)


def _jsonl(file: Path, where: str, wanted: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    """Read one document a line; a line whose ids are plainly not wanted is passed over."""
    ids = None if wanted is None else {doc.encode() for doc in wanted}
    number = 0
    for block in files.blocks(file):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if not line.strip() or (ids is not None and not _may_be(line, ids)):
                continue
            yield _record(parse_json(line, where, number), where, number)


def _may_be(line: bytes, ids: set[bytes]) -> bool:
    named = _ID_FIELD.findall(line)
    return not named or any(quoted in ids or bare in ids or b"\\" in quoted for quoted, bare in named)


def _json(file: Path, where: str) -> Iterator[tuple[str, Text]]:
    data: Any = load(file, where)
    if isinstance(data, dict):
        for doc, known in cast("dict[str, Any]", data).items():
            yield doc, _text(known, where)
    elif isinstance(data, list):
        for known in cast("list[Any]", data):
            yield _record(known, where, None)
    else:
        raise InputError("this JSON holds no documents", fix='write {"d1": "the text"}', path=where)


def _record(known: Any, where: str, line: int | None) -> tuple[str, Text]:
    fields = cast("Mapping[str, Any]", known) if isinstance(known, Mapping) else {}
    doc = _first(fields, _IDS)
    if doc is None:
        problem = f"{known!r:.60} is not a document with an id"
        raise InputError(problem, fix='write {"doc_id": ..., "text": ...}', path=where, line=line)
    return id_text(fields[doc], "document id", path=where, line=line), _text(fields)


def _word(known: Mapping[str, Any], usual: tuple[str, ...]) -> str:
    """Give the first field of these names as text; some write a text as a list of paragraphs."""
    name = _first(known, usual)
    value: Any = "" if name is None else known[name]
    text = "\n".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return text.encode(errors="replace").decode()  # half a character cannot be shown


def _text(known: Any, where: str = "<texts>") -> Text:
    if isinstance(known, str):
        return Text("", known)
    if isinstance(known, Mapping):
        fields = cast("Mapping[str, Any]", known)
        return Text(_word(fields, _TITLES), _word(fields, _TEXTS))
    raise InputError(f"{known!r:.40} is not text", fix='give "the text", or {"title": ..., "text": ...}', path=where)


def _first(names: Iterable[str], usual: tuple[str, ...]) -> str | None:
    by_name = {name.strip().strip('"').lower().replace("-", "_"): name for name in names}
    return next((by_name[name] for name in usual if name in by_name), None)


def _chosen(names: Iterable[str], where: str) -> tuple[str, str | None, str | None]:
    """Find the names of id, title and text; one of the last two may be missing."""
    known = list(names)
    doc, title, text = (_first(known, usual) for usual in (_IDS, _TITLES, _TEXTS))
    if doc is None or (title is None and text is None):
        lacking = "document id" if doc is None else "text"
        problem = f"no {lacking} among its columns {', '.join(known)[:80]}"
        raise InputError(problem, fix=_FIX, path=where)
    return doc, title, text


def _tsv(file: Path, where: str) -> Iterator[tuple[str, Text]]:
    places: tuple[int, int | None, int | None] | None = None
    width = number = 0
    for block in files.blocks(file):
        for line in block.decode().removesuffix("\n").split("\n"):
            number += 1
            row = line.removesuffix("\r").split("\t")
            if places is None:
                names, width = row, len(row)
                places = _places(names, where)
                if _first(names, _IDS) is not None:
                    continue
            if not line.strip():
                continue
            if len(row) != width:
                problem = f"{len(row)} fields where {width} are expected"
                raise InputError(problem, fix="give every line the same fields", path=where, line=number)
            doc, title, text = places
            yield row[doc], Text("" if title is None else row[title], "" if text is None else row[text])


def _places(names: list[str], where: str) -> tuple[int, int | None, int | None]:
    if _first(names, _IDS) is None and len(names) in _UNNAMED:
        return _UNNAMED[len(names)]
    doc, title, text = _chosen(names, where)
    return names.index(doc), None if title is None else names.index(title), None if text is None else names.index(text)


def _csv(file: Path, where: str, wanted: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    from pyarrow import csv

    header = files.head(file).decode(errors="replace").split("\n", 1)[0].rstrip("\r").split(",")
    names = [name.strip('"') for name in header]
    columns = _chosen(names, where)
    kept = _used(names, where)
    with files.opened(file) as stream:
        reader = csv.open_csv(
            pa.PythonFile(stream, "r"),
            read_options=csv.ReadOptions(block_size=_LONGEST),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(kept, pa.string()), include_columns=kept),
        )
        for batch in reader:
            yield from _of_batch(batch, columns, wanted)


def _used(names: list[str], where: str) -> list[str]:
    return [name for name in _chosen(names, where) if name is not None]


def _batches(batches: Iterable[Any], where: str, wanted: frozenset[str] | None) -> Iterator[tuple[str, Text]]:
    for batch in batches:
        yield from _of_batch(batch, _chosen(batch.schema.names, where), wanted)


def _of_batch(
    batch: Any, columns: tuple[str, str | None, str | None], wanted: frozenset[str] | None
) -> Iterator[tuple[str, Text]]:
    ids = pc.cast(batch.column(columns[0]), pa.string())
    if wanted is not None:
        marks = pc.is_in(ids, value_set=pa.array(sorted(wanted), pa.string()))
        batch, ids = batch.filter(marks), ids.filter(marks)
    nothing = [""] * len(ids)
    title, text = (nothing if name is None else batch.column(name).to_pylist() for name in columns[1:])
    for doc, one, other in zip(ids.to_pylist(), title, text, strict=True):
        yield doc, Text(str(one or ""), str(other or ""))
