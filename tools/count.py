"""Count the lines of a package: ``count.py [PATH]`` prints a table, ``count.py OLD NEW`` the difference.

A code line has a token of code, and is not part of a docstring. Characters per code line exclude indentation, newline,
and trailing comments. Packages are the second-level folders.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ("code", "docstring", "comment", "blank", "files", "characters")
_NO_CODE = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    """Print the table of one tree, or the difference of two."""
    tables = [by_package(Path(path)) for path in sys.argv[1:3] or [ROOT / "src" / "judged"]]
    plus = "+" if len(tables) == 2 else ""
    print(" " * 16 + "".join(f"{name:>11}" for name in (*COLUMNS[:-1], "chars/code")))
    for package in sorted(set().union(*tables), key=lambda name: (name == "total", name)):
        numbers = row(tables[-1][package])
        if plus:
            numbers = [new - old for old, new in zip(row(tables[0][package]), numbers, strict=True)]
        print(f"{package:16}" + "".join(f"{n:{plus}11,}" for n in numbers[:-1]) + f"{numbers[-1]:{plus}11.1f}")


def row(count: Counter[str]) -> list[float]:
    """Return the numbers of a row; the last is characters per code line."""
    return [*(count[name] for name in COLUMNS[:-1]), count["characters"] / (count["code"] or 1)]


def by_package(root: Path) -> defaultdict[str, Counter[str]]:
    """Count the lines of each package of a tree, and of all packages."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).parts
        package = parts[0] if len(parts) > 1 else "(top)"
        counts[package] += (count := of_source(path.read_text()))
        counts["total"] += count
    return counts


def of_source(source: str) -> Counter[str]:
    """Count the lines of one file."""
    lines = source.splitlines()
    docstrings, code, comments = set[int](), set[int](), set[int]()
    ends = {number: len(line) for number, line in enumerate(lines, 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DESCRIBED) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
            ends[token.start[0]] = token.start[1]
        elif token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= docstrings
    comments -= code | docstrings
    blank = len(lines) - len(code | docstrings | comments)
    characters = sum(len(lines[number - 1][: ends[number]].strip()) for number in code)
    return Counter(dict(zip(COLUMNS, (len(code), len(docstrings), len(comments), blank, 1, characters), strict=True)))


if __name__ == "__main__":
    main()
