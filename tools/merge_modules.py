"""Merge modules into one, and rewrite every import that names them.

    python tools/merge_modules.py judged.labels.maxmean judged.labels.by_topic into judged.labels.estimation

The parts come in the order that is given; imports are merged, names that several parts define get the name of their
module in front, and the docstring of the target, or of the first part, stays. Where the same name is imported from two places the merge
is refused: rename it first.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import textwrap
import tokenize
from collections import Counter
from dataclasses import dataclass, field

from move_modules import ENDINGS, ROOT, git, path_of

_SPACE = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}


@dataclass
class Part:
    """A module in pieces: what it imports, what it imports for types alone, and its other statements."""

    module: str
    docstring: str = ""
    imports: dict[str, str] = field(default_factory=dict)  # statement by the name that it binds
    types: dict[str, str] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)  # other statements for types alone
    body: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, module: str) -> Part:
        """Take a module apart."""
        source = path_of(module).read_text(encoding="utf-8")
        lines, part, end = source.split("\n"), cls(module), 0
        for node in ast.parse(source).body:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) - 1
            whole = "\n".join(lines[end : node.end_lineno])  # with comments and empty lines in front
            trailing = lines[node.end_lineno - 1][node.end_col_offset :] if node.end_lineno else ""
            end = node.end_lineno or 0
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and not part.docstring
                and first == 0
            ):
                part.docstring = whole.strip("\n")
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                part.imports |= {} if getattr(node, "module", "") == "__future__" else bound(node, trailing)
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                for inner in node.body:
                    if isinstance(inner, (ast.Import, ast.ImportFrom)):
                        part.types |= bound(inner)
                    else:
                        part.aliases.append(textwrap.dedent("\n".join(lines[inner.lineno - 1 : inner.end_lineno])))
                        part.names.update(defined(inner))
            else:
                part.body.append(whole)
                part.names.update(defined(node))
        return part

    def rename(self, renamed: dict[str, str]) -> None:
        """Rename what the module defines, wherever its own code reads it."""
        self.body = [replaced(text, renamed) for text in self.body]
        self.aliases = [replaced(text, renamed) for text in self.aliases]


def bound(node: ast.Import | ast.ImportFrom, comment: str = "") -> dict[str, str]:
    """Return a statement for each name that an import binds."""
    head = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
    return {
        name.asname
        or (name.name if head else name.name.partition(".")[0]): f"{head}import {ast.unparse(name)}{comment}"
        for name in node.names
    }


def defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)}


def replaced(text: str, renamed: dict[str, str]) -> str:
    """Rename names in a piece of code; attributes and names of keyword arguments stay."""
    if not renamed:
        return text
    lines, inside = text.split("\n"), _own_names(text)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if token.type != tokenize.NAME or token.string not in renamed or (at and tokens[at - 1].string == "."):
            continue
        before = next((other.string for other in reversed(tokens[:at]) if other.type not in _SPACE), "")
        if tokens[at + 1].string == "=" and before in {"(", ","}:
            continue
        row, column = token.start
        if any(token.string in names and row in rows for rows, names in inside):
            continue
        line = lines[row - 1]
        lines[row - 1] = line[:column] + renamed[token.string] + line[column + len(token.string) :]
    return "\n".join(lines)


def _own_names(text: str) -> list[tuple[range, set[str]]]:
    """Return the lines of each function, and the names that are its own: those mean nothing of the module."""
    found: list[tuple[range, set[str]]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
            names |= {
                inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
            }
            names |= {
                inner.name for inner in ast.walk(node) if inner is not node and isinstance(inner, ast.FunctionDef)
            }
            found.append((range(node.lineno, (node.end_lineno or node.lineno) + 1), names))
    return found


def without_module(text: str, module: str, names: dict[str, str]) -> str:
    """Write ``function`` for ``module.function``."""
    return re.sub(rf"(?<![\w.]){module}\.(\w+)", lambda found: names.get(found[1], found[1]), text)


def _longer(name: str, module: str, target: str) -> str:
    """Put the name of a module in front of a name; of ``labels_import.command`` in ``labels`` that is ``import_command``."""
    stem, home = (path.rpartition(".")[2] for path in (module, target))
    family = f"{stem.partition('_')[0]}_"
    stem = stem.removeprefix(family) if f"{home}_".startswith(family) else stem
    plain = name.lstrip("_")
    return name[: len(name) - len(plain)] + f"{stem.upper() if plain.isupper() else stem}_{plain}"


def _drop_repeated(parts: list[Part]) -> None:
    """Leave out what stands word for word in a part before."""
    known = set[str]()
    for part in parts:
        for pieces in (part.body, part.aliases):
            for piece in [piece for piece in pieces if piece.strip() in known and defined(ast.parse(piece).body[0])]:
                pieces.remove(piece)
                part.names -= defined(ast.parse(piece).body[0])
        known.update(piece.strip() for piece in (*part.body, *part.aliases))


def merge(modules: list[str], target: str) -> dict[str, dict[str, str]]:
    """Write the merged module, remove its parts, and return the new names of what had to be renamed, by module."""
    parts = [Part.read(module) for module in modules]
    _drop_repeated(parts)
    counts = Counter(name for part in parts for name in part.names)
    renamed: dict[str, dict[str, str]] = {}
    for part in parts[1:] if target == modules[0] else parts:
        again = {name: _longer(name, part.module, target) for name in part.names if counts[name] > 1}
        renamed[part.module] = again
        part.rename(again)
    own = {module: {name: renamed.get(module, {}).get(name, name) for name in part.names}
           for module, part in zip(modules, parts, strict=True)}  # fmt: skip
    imports: dict[str, str] = {}
    types: dict[str, str] = {}
    for part in parts:
        for found, kept in ((part.imports, imports), (part.types, types)):
            for name, statement in found.items():
                home = re.match(r"from (\S+) import (\w+)", statement)
                if home and f"{home[1]}.{home[2]}" in own:  # the module itself
                    part.body = [without_module(text, name, own[f"{home[1]}.{home[2]}"]) for text in part.body]
                elif home and home[1] in own:  # it stands in the merged module
                    new = own[home[1]].get(home[2], home[2])
                    if new != name:
                        part.rename({name: new})
                elif kept.setdefault(name, statement) != statement:
                    raise SystemExit(f"{name} is {kept[name]!r}, and in {part.module} {statement!r}")
    if both := [name for name in imports.keys() & types.keys() if imports[name].split("#")[0].strip() != types[name]]:
        raise SystemExit(f"imported twice, from different modules: {', '.join(both)}")
    every = set().union(*(own[module].values() for module in modules))
    if clash := every & (imports.keys() | types.keys()):
        raise SystemExit(f"defined and imported: {', '.join(sorted(clash))}")
    for_types = [*(text for name, text in types.items() if name not in imports),
                 *(alias.strip() for part in parts for alias in part.aliases)]  # fmt: skip
    text = "\n".join(
        [next((part.docstring for part in parts if part.module == target), parts[0].docstring), "", "from __future__ import annotations", "", *imports.values(), "",
         *(["if TYPE_CHECKING:", *("    " + line for text in for_types for line in text.split("\n")), ""] if for_types else [])]
    )  # fmt: skip
    text += "\n\n\n" + "\n\n\n".join("\n".join(part.body).strip("\n") for part in parts if part.body) + "\n"
    for module in modules:
        if module != target:
            git("rm", "-q", "-f", "--cached", str(path_of(module)))
            path_of(module).unlink()
    path_of(target).write_text(text, encoding="utf-8")
    git("add", str(path_of(target)))
    return renamed


def rewrite(modules: list[str], target: str, renamed: dict[str, dict[str, str]]) -> None:
    """Rewrite imports of the merged modules, and texts that name what stands in them."""
    old = {module for module in modules if module != target}
    pattern = re.compile(
        r"(?<![\w.])(" + "|".join(map(re.escape, sorted(old, key=len, reverse=True))) + r")(?:\.(\w+))?(?!\w)"
    )
    statement = re.compile(r"^([ \t]*(?:>>> |\.\.\. )?)from (judged[\w.]*) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)

    def imported(found: re.Match[str]) -> str:
        indent, home, listed = found.groups()
        names = [name.strip() for name in re.sub(r"#.*", "", listed).strip("() \n").split(",") if name.strip()]
        if home in old:
            new = [name for name in names]
            for at, name in enumerate(new):
                plain, *alias = name.split()
                other = renamed.get(home, {}).get(plain, plain)
                new[at] = name if other == plain else f"{other} as {alias[-1] if alias else plain}"
            return f"{indent}from {target} import {', '.join(new)}"
        moved = [name for name in names if f"{home}.{name.split()[0]}" in old]
        if not moved:
            return found[0]
        package, _, stem = target.rpartition(".")
        rest = [name for name in names if name not in moved]
        lines = [f"from {home} import {', '.join(rest)}"] if rest else []
        lines += [f"from {package} import {stem} as {name.split()[-1]}" for name in moved]
        for name in moved:
            if again := renamed.get(f"{home}.{name.split()[0]}"):
                print(f"look at uses of {home}.{name}: renamed are {again}")
        return indent + ("\n" + indent).join(lines)

    def named(found: re.Match[str]) -> str:
        module, name = found.groups()
        return target + ("" if name is None else f".{renamed.get(module, {}).get(name, name)}")

    for path in map(ROOT.joinpath, git("ls-files").split("\n")):
        if path.is_file() and path.suffix in ENDINGS and path.name not in {"move_modules.py", "merge_modules.py"}:
            text = path.read_text(encoding="utf-8")
            new = pattern.sub(named, statement.sub(imported, text))
            if new != text:
                path.write_text(new, encoding="utf-8")


def main(*given: str) -> None:
    """Merge what is named before ``into`` into what is named behind it, and sort imports."""
    modules, target = list(given[: given.index("into")]), given[-1]
    if path_of(target).exists() and target not in modules:
        modules.insert(0, target)
    rewrite(modules, target, merge(modules, target))
    changed = [
        path for path in git("diff", "--name-only", "HEAD").split() if path.endswith(".py") and (ROOT / path).exists()
    ]
    for command in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, *changed], cwd=ROOT, check=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
