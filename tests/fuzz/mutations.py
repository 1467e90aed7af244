"""Mutations of the bytes of a file."""

from __future__ import annotations

import bz2
import gzip
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Mutation = Callable[[bytes, Random], bytes]

NUMBERS = (
    "nan", "inf", "-inf", "1e999", "-1e400", "1e-400", "9" * 30, "9" * 400, "9" * 5000, "1_000", "1,5", "",
    "-0", "+3", "0x1F", "1e", ".5", "5.", "1e5", "--1", "٣", "1.0", "9007199254740993", "-1", "2147483648", "true",
    "null", "None", "0b1", "1d0", "infinity",
)  # fmt: skip
WORDS = (
    "1", "2", "0", "Q0", "q1", "d1", "d2", "1.5", "-2", "tag", "#", '"', ",", "\t", " ", "\n", "\r", "query_id",
    "doc_id", "score", "relevance", "rank", "{", "}", "[", "]", ":", '"q"', '"d"', '"query_id"', "é", "<top>", "</top>",
    "<num>", "<title>", "<topic number='1'>", "</topic>", "\0", "\ufeff", "007", "[[check]]", "=", "[gate]",
    "<DOC>", "</DOC>", "<DOCNO>",
    *NUMBERS,
)  # fmt: skip
_ODD_TEXTS = (
    "", " ", "\t", "\0", "\ufeff", "\u202e", "\u2028", "\x85", "\x0b", "\x0c", "\x1c", "#", '"', "'", "\\", "\\ud800",
    "\r", "Q 1", "é" * 9, "=1+1", "../..", "%s", "{}", "<", "&amp;", "x" * 300,
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_WORD = re.compile(rb"[^\s,;\"{}\[\]:=]+")
_MOST = 1 << 22  # bytes of a case


def mutated(data: bytes, random: Random) -> bytes:
    """Return the bytes after one to three mutations."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        binary = data[:4] in {b"PAR1", b"ARRO"} or b"\0" in data[:64]
        data = random.choice(_OF_BYTES if binary and random.random() < 0.9 else _ALL)(data, random)[:_MOST]
    draw = random.random()
    if draw < 0.04:
        data = random.choice((gzip.compress, bz2.compress))(data)
        data = random.choice(_OF_BYTES)(data, random) if random.random() < 0.7 else data
    return data


def soup(random: Random) -> bytes:
    """Return words that mean something to some reader, in any order."""
    text = random.choice(("", " ", "\n", "\t")).join(random.choices(WORDS, k=random.randrange(40)))
    data = random.choice((b"", b"", b"", b"PAR1", b"ARROW1\0\0")) + text.encode()
    return gzip.compress(data) if random.random() < 0.1 else data


def _flip_bits(data: bytes, random: Random) -> bytes:
    mutable = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        if mutable:
            mutable[random.randrange(len(mutable))] ^= 1 << random.randrange(8)
    return bytes(mutable)


def _flip_bit_near_end(data: bytes, random: Random) -> bytes:
    """Flip a bit where binary formats store their metadata."""
    mutable = bytearray(data)
    if mutable:
        mutable[-1 - random.randrange(min(len(mutable), 600))] ^= 1 << random.randrange(8)
    return bytes(mutable)


def _overwrite(data: bytes, random: Random) -> bytes:
    """Overwrite some bytes with invalid lengths and offsets."""
    start = random.randrange(len(data) + 1)
    replacement = random.choice(
        (
            b"\0" * 8,
            b"\xff" * 4,
            b"\xff" * 8,
            b"\xff\xff\xff\x7f",
            b"\0\0\0\x80",
            random.randbytes(random.randrange(1, 40)),
        )
    )
    return data[:start] + replacement + data[start + len(replacement) :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _part(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 8, 100, 5000)))


def _leave_out(data: bytes, random: Random) -> bytes:
    start, end = _part(data, random)
    return data[:start] + data[end:]


def _repeat(data: bytes, random: Random) -> bytes:
    start, end = _part(data, random)
    return data[:end] + data[start:end] * random.choice((1, 2, 50)) + data[end:]


def _nul(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    return data[:start] + b"\0" * random.choice((1, 4)) + data[start:]


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _shuffle(data: bytes, random: Random) -> bytes:
    lines = _lines(data)
    random.shuffle(lines)
    return b"".join(lines)


def _repeat_line(data: bytes, random: Random) -> bytes:
    lines = _lines(data) or [b"\n"]
    index = random.randrange(len(lines))
    lines[index:index] = [random.choice(lines)] * random.choice((1, 3, 1000))
    return b"".join(lines)


def _columns(data: bytes, random: Random) -> bytes:
    """Swap, double, or delete a column, in every line or in one."""
    delimiter = next((sign for sign in (b"\t", b";", b",") if sign in data[:1000]), b" ")
    first, second, action = random.randrange(7), random.randrange(7), random.randrange(3)
    lines = data.split(b"\n")
    line_numbers = range(len(lines)) if random.random() < 0.7 else [random.randrange(len(lines))]
    for line_number in line_numbers:
        fields = lines[line_number].split(delimiter)
        if max(first, second) < len(fields):
            if action == 0:
                fields[first], fields[second] = fields[second], fields[first]
            elif action == 1:
                fields.insert(first, fields[second])
            else:
                del fields[first]
        lines[line_number] = delimiter.join(fields)
    return b"\n".join(lines)


def _long_line(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    piece = random.choice(
        (b"\t", b" ", b",", b"x", b"x ", b'"', b"[", b'{"a":', b"<a>", b"\r", b"#", b"(", b"9", b"-", b"a.", b"[a.")
    )
    return data[:start] + piece * (random.choice((300, 3000, 100_000)) // len(piece)) + data[start:]


def _one_line(data: bytes, random: Random) -> bytes:
    return data.replace(b"\n", random.choice((b"", b" ", b"\t", b"\x0b")))


def _line_ends(data: bytes, random: Random) -> bytes:
    return data.replace(b"\n", random.choice((b"\r", b"\r\n", b"\n\n", b"\n\r", b"\x85", b"\xe2\x80\xa8")))


def _recode(data: bytes, random: Random) -> bytes:
    text = data.decode(errors="replace")
    encoding = random.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-8-sig", "utf-7", "cp037"))
    return text.encode(encoding, errors="replace")


def _not_utf8(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    return (
        data[:start]
        + random.choice((b"\xe9", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"))
        + data[start:]
    )


def _replaced(pattern: re.Pattern[bytes], choices: tuple[str, ...]) -> Mutation:
    def replace(data: bytes, random: Random) -> bytes:
        start = random.randrange(len(data) + 1)
        match = pattern.search(data, start) or pattern.search(data)
        if match is None:
            return data
        return data[: match.start()] + random.choice(choices).encode() + data[match.end() :]

    return replace


def _json_node(data: bytes, random: Random) -> bytes:
    """Change one value, key or list of a JSON document, or of one of its lines."""
    lines = data.split(b"\n")
    line_number = random.randrange(len(lines))
    try:
        return json.dumps(changed(json.loads(data), random)).encode()
    except (ValueError, RecursionError):
        pass
    try:
        lines[line_number] = json.dumps(changed(json.loads(lines[line_number]), random)).encode()
    except (ValueError, RecursionError):
        return _flip_bits(data, random)
    return b"\n".join(lines)


def changed(value: Any, random: Random, *, depth_chance: float = 0.8) -> Any:
    """Return a JSON value with one part changed, deleted, or of another type."""
    if isinstance(value, dict) and value and random.random() < depth_chance:
        key = random.choice(list(value))
        draw = random.random()
        if draw < 0.15:
            return {name: member for name, member in value.items() if name != key}
        if draw < 0.25:
            return {**{name: member for name, member in value.items() if name != key}, random.choice(WORDS): value[key]}
        return {**value, key: changed(value[key], random)}
    if isinstance(value, list) and value and random.random() < depth_chance:
        index = random.randrange(len(value))
        draw = random.random()
        if draw < 0.2:
            return value[:index] + value[index + 1 :]
        if draw < 0.3:
            return [*value, value[index]]
        return [*value[:index], changed(value[index], random), *value[index + 1 :]]
    return random.choice((
        None, True, 0, -1, 10**30, 0.5, float("nan"), float("inf"), "", "x", "\ud800", "\0", [], {}, [value],
        {"a": value}, [[1]], str(value),
    ))  # fmt: skip


_OF_BYTES: tuple[Mutation, ...] = (
    _flip_bits, _flip_bits, _flip_bits, _flip_bit_near_end, _overwrite, _cut, _leave_out, _repeat, _nul,
)  # fmt: skip
_ALL: tuple[Mutation, ...] = (
    *_OF_BYTES[2:], _shuffle, _repeat_line, _columns, _columns, _long_line, _one_line, _line_ends, _recode, _not_utf8,
    _replaced(_NUMBER, NUMBERS), _replaced(_NUMBER, NUMBERS), _replaced(_WORD, _ODD_TEXTS), _replaced(_WORD, WORDS),
    _json_node, _json_node,
)  # fmt: skip
