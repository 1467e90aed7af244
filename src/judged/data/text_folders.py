"""Read documents from folders of text files, and from tagged files of TREC."""

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


_CONTAINER_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather"})
_COMPRESSION_SUFFIXES = frozenset({".gz", ".bz2", ".xz", ".zst"})


def folder_texts(folder: Path, doc_ids: frozenset[str] | None) -> Iterator[tuple[Path, str, str]]:
    """Yield path, document id and text of each file in a folder and its subfolders.

    Id and text are empty for files in a format that holds several documents.

    Raises
    ------
    InputError
        If there are no files, a file is not text, or two files have the same id.
    """
    paths = sorted(folder.glob("corpus.jsonl*")) or [  # BEIR, whose folders also contain queries and qrels
        Path(subfolder) / name
        for subfolder, _, names in sorted(os.walk(folder))
        for name in sorted(names)
        if not any(part.startswith(".") for part in (Path(subfolder) / name).relative_to(folder).parts)
    ]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise InputError(
            "there is no file in this folder", fix="use a folder that contains documents", path=str(folder)
        )
    path_by_id: dict[str, Path] = {}
    not_text: list[str] = []
    for path in paths:
        is_compressed = path.suffix.lower() in _COMPRESSION_SUFFIXES
        name = path.relative_to(folder).with_suffix("") if is_compressed else path.relative_to(folder)
        head = files.head(path)
        if name.suffix.lower() in _CONTAINER_SUFFIXES or is_trec(head):
            yield path, "", ""
            continue
        doc = name.with_suffix("").as_posix()
        if doc in path_by_id:
            problem = f"two files have the id {doc!r}: {path_by_id[doc].name} and {path.name}"
            raise InputError(problem, fix="use file names that differ not only in the extension", path=str(folder))
        path_by_id[doc] = path
        if b"\0" in head:
            not_text.append(path.name)
        elif doc_ids is None or doc in doc_ids:
            with files.opened(path) as stream:
                data = stream.read().removeprefix(files.BOM)
            try:
                yield path, doc, data.decode().strip()
            except UnicodeDecodeError:
                not_text.append(path.name)
    if not_text:
        problem = f"{len(not_text)} of {len(paths)} files are not UTF-8 text: {', '.join(not_text)[:80]}"
        raise InputError(
            problem, fix="convert these files to UTF-8 text, or move them to another folder", path=str(folder)
        )


_START = re.compile(rb"<DOC(?:\s[^<>]*)?>", re.IGNORECASE)
_END = re.compile(rb"</DOC\s*>", re.IGNORECASE)
_MAX_DOCUMENT_BYTES = 1 << 24  # limits the memory if an end tag is missing
_ID = re.compile(r"<DOCNO\s*>([^<]*)", re.IGNORECASE)
_ID_ATTRIBUTE = re.compile(r"<DOC\s[^<>]*?\bid\s*=\s*[\"']?([^\s\"'<>]+)", re.IGNORECASE)  # AQUAINT-2, Gigaword
_FIELD = "<({})(?:\\s[^<>]*)?>(.*?)(?:</\\1\\s*>|\\Z)"
_TITLE = re.compile(_FIELD.format("TITLE|HEADLINE|HEAD|HL|TTL"), re.IGNORECASE | re.DOTALL)
_TEXT = re.compile(_FIELD.format("TEXT|LEADPARA|LP|BODY|ABSTRACT"), re.IGNORECASE | re.DOTALL)
_METADATA = re.compile(  # elements that are not part of the text
    r"<(?:DOCNO|DOCID|DOCOLDNO|FILEID|PARENT)(?:\s[^<>]*)?>[^<]*|" + _FIELD.format("DOCHDR|SCRIPT|STYLE"),
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"<[/!?]?[A-Za-z][^<>]*>|<!--[^<]*-->")


def is_trec(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a TREC document collection."""
    return head.lstrip().startswith(b"<") and _START.search(head) is not None


def trec_documents(file: Path, where: str) -> Iterator[tuple[str, str, str]]:
    """Yield id, title and text of each document; content between documents is ignored.

    The title is the content of ``TITLE``, ``HEADLINE``, ``HEAD``, ``HL`` or ``TTL``. The text is the content of
    ``TEXT``, ``LP``, ``LEADPARA``, ``BODY`` or ``ABSTRACT``, or all other content if there is no such element, as in
    web pages. Tags are removed. A document that is not valid UTF-8 is read as Latin-1, as in old collections.
    """
    buffer, line = b"", 1
    for block in files.blocks(file, returns=True):
        *documents, buffer = _END.split(buffer + block)
        for document in documents:
            yield _parse_document(document, where, line)
            line += document.count(b"\n")
        if len(buffer) > _MAX_DOCUMENT_BYTES:
            problem = f"this document has more than {_MAX_DOCUMENT_BYTES:,} bytes"
            raise InputError(problem, fix="write </DOC> after each document", path=where, line=line)
    if start := _START.search(buffer):
        line += buffer.count(b"\n", 0, start.start())
        raise InputError(
            "a <DOC> without </DOC>",
            fix="add </DOC> after the document, or download the file again",
            path=where,
            line=line,
        )


def _parse_document(document: bytes, where: str, line: int) -> tuple[str, str, str]:
    starts = list(_START.finditer(document))
    if len(starts) != 1:
        problem = "a <DOC> without </DOC>" if starts else "a </DOC> without <DOC>"
        raise InputError(problem, fix="write <DOC> before and </DOC> after each document", path=where, line=line)
    start = starts[0].start()
    try:
        text = document[start:].decode()
    except UnicodeDecodeError:
        text = document[start:].decode("latin-1")
    id_match = _ID.search(text) or _ID_ATTRIBUTE.match(text)
    doc = "" if id_match is None else unescape(id_match[1]).strip()
    if not doc:
        line += document.count(b"\n", 0, start)
        raise InputError("a document has no id", fix="write <DOCNO>...</DOCNO>", path=where, line=line)
    text = _METADATA.sub(" ", text)
    title = " ".join(_strip_tags(content) for _, content in _TITLE.findall(text))
    fields = [content for _, content in _TEXT.findall(text)] or [_TITLE.sub(" ", text)]
    return doc, " ".join(title.split()), "\n".join(map(_strip_tags, fields)).strip()


def _strip_tags(text: str) -> str:
    r"""Remove tags, but not a ``<`` in a sentence.

    >>> _strip_tags("<P>if x < 5 &amp; y</P>\n")
    'if x < 5 & y'
    """
    return unescape(_TAG.sub(" ", text)).strip()
