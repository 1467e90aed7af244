"""Folders of documents: one text a file, or files that hold many."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from judged.data import files
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


_MANY = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather"})
_PACKED = frozenset({".gz", ".bz2", ".xz", ".zst"})


def folder_texts(folder: Path, wanted: frozenset[str] | None) -> Iterator[tuple[Path, str, str]]:
    """Give each file below a folder, with id and text of the one document that it is, or ``""`` if it holds many.

    Raises
    ------
    InputError
        If there is no file, one that is not text, or two of one id.
    """
    paths = sorted(folder.glob("corpus.jsonl*")) or [  # as BEIR has it, beside queries and qrels
        Path(below) / name
        for below, _, names in sorted(os.walk(folder))
        for name in sorted(names)
        if not any(part.startswith(".") for part in (Path(below) / name).relative_to(folder).parts)
    ]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise InputError("there is no file in this folder", fix="name a folder of documents", path=str(folder))
    known: dict[str, Path] = {}
    odd: list[str] = []
    for path in paths:
        packed = path.suffix.lower() in _PACKED
        name = path.relative_to(folder).with_suffix("") if packed else path.relative_to(folder)
        head = files.head(path)
        if name.suffix.lower() in _MANY or is_trec(head):
            yield path, "", ""
            continue
        doc = name.with_suffix("").as_posix()
        if doc in known:
            problem = f"two files have the id {doc!r}: {known[doc].name} and {path.name}"
            raise InputError(problem, fix="let their names differ in more than their endings", path=str(folder))
        known[doc] = path
        if b"\0" in head:
            odd.append(path.name)
        elif wanted is None or doc in wanted:
            with files.opened(path) as stream:
                data = stream.read().removeprefix(files.BOM)
            try:
                yield path, doc, data.decode().strip()
            except UnicodeDecodeError:
                odd.append(path.name)
    if odd:
        problem = f"{len(odd)} of {len(paths)} files are not UTF-8 text: {', '.join(odd)[:80]}"
        raise InputError(problem, fix="convert them, or put them elsewhere", path=str(folder))


_START = re.compile(rb"<DOC(?:\s[^<>]*)?>", re.IGNORECASE)
_END = re.compile(rb"</DOC\s*>", re.IGNORECASE)
_LONGEST = 1 << 24  # bytes of a document
_ID = re.compile(r"<DOCNO\s*>([^<]*)", re.IGNORECASE)
_NAMED = re.compile(r"<DOC\s[^<>]*?\bid\s*=\s*[\"']?([^\s\"'<>]+)", re.IGNORECASE)  # as AQUAINT-2 and Gigaword write it
_FIELD = "<({})(?:\\s[^<>]*)?>(.*?)(?:</\\1\\s*>|\\Z)"
_TITLE = re.compile(_FIELD.format("TITLE|HEADLINE|HEAD|HL|TTL"), re.IGNORECASE | re.DOTALL)
_TEXT = re.compile(_FIELD.format("TEXT|LEADPARA|LP|BODY|ABSTRACT"), re.IGNORECASE | re.DOTALL)
_ABOUT = re.compile(  # not what the document says
    r"<(?:DOCNO|DOCID|DOCOLDNO|FILEID|PARENT)(?:\s[^<>]*)?>[^<]*|" + _FIELD.format("DOCHDR|SCRIPT|STYLE"),
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"<[/!?]?[A-Za-z][^<>]*>|<!--[^<]*-->")


def is_trec(head: bytes) -> bool:
    """Whether a file that begins so holds TREC's documents."""
    return head.lstrip().startswith(b"<") and _START.search(head) is not None


def trec_documents(file: Path, where: str) -> Iterator[tuple[str, str, str]]:
    """Give id, title and text of each document; what stands between documents is passed over.

    Titles are what ``TITLE``, ``HEADLINE``, ``HEAD``, ``HL`` or ``TTL`` hold, texts what ``TEXT``, ``LP``,
    ``LEADPARA``, ``BODY`` or ``ABSTRACT`` do, and everything that is left where there is none of these, as on pages of
    the web. Tags within are left out. A document that is not UTF-8 is taken as Latin-1, as the old collections are.
    """
    rest, line = b"", 1
    for block in files.blocks(file, returns=True):
        *whole, rest = _END.split(rest + block)
        for part in whole:
            yield _document(part, where, line)
            line += part.count(b"\n")
        if len(rest) > _LONGEST:
            problem = f"a document of more than {_LONGEST:,} bytes"
            raise InputError(problem, fix="close every <DOC>", path=where, line=line)
    if start := _START.search(rest):
        line += rest.count(b"\n", 0, start.start())
        raise InputError("a <DOC> without </DOC>", fix="close it, or fetch the file again", path=where, line=line)


def _document(part: bytes, where: str, line: int) -> tuple[str, str, str]:
    starts = list(_START.finditer(part))
    if len(starts) != 1:
        problem = "a <DOC> without </DOC>" if starts else "a </DOC> without <DOC>"
        raise InputError(problem, fix="open and close every document", path=where, line=line)
    at = starts[0].start()
    try:
        text = part[at:].decode()
    except UnicodeDecodeError:
        text = part[at:].decode("latin-1")
    named = _ID.search(text) or _NAMED.match(text)
    doc = "" if named is None else unescape(named[1]).strip()
    if not doc:
        line += part.count(b"\n", 0, at)
        raise InputError("a document has no id", fix="write <DOCNO>...</DOCNO>", path=where, line=line)
    text = _ABOUT.sub(" ", text)
    title = " ".join(_plain(content) for _, content in _TITLE.findall(text))
    fields = [content for _, content in _TEXT.findall(text)] or [_TITLE.sub(" ", text)]
    return doc, " ".join(title.split()), "\n".join(map(_plain, fields)).strip()


def _plain(text: str) -> str:
    r"""Leave out tags; a ``<`` in a sentence stays.

    >>> _plain("<P>if x < 5 &amp; y</P>\n")
    'if x < 5 & y'
    """
    return unescape(_TAG.sub(" ", text)).strip()
