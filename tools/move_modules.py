"""Move modules and packages, and rewrite every import and path that names them.

    python tools/move_modules.py judged.answer=judged.base.answer judged.sample=judged.data.sample

A module that is moved takes its tests along: the folder or file of the same place below tests/. Only names are
rewritten, in sources, tests, documentation and settings; ``git diff -M`` shows the moves as renames.

Attributes of the package are left alone where its public interface has them (``judged.measures.parse``): only imports,
and texts that begin with the name of a module, are rewritten there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = {"arrays", "measures", "slicing", "uncertainty"}
ENDINGS = {".py", ".pyi", ".md", ".toml", ".yml", ".html", ".js", ".css", ".cfg", ".json", ".jinja", ".ipynb"}


def git(*arguments: str) -> str:
    """Run git in this repository, and return what it prints."""
    """Run git in this repository, and return what it prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def path_of(module: str, root: str = "src") -> Path:
    """Return the folder of a package, or the file of a module."""
    place = ROOT / root / module.replace(".", "/")
    file = place.with_name(f"{place.name}.py")
    return place if place.is_dir() and not file.exists() else file


def move(old: str, new: str) -> None:
    """Move a module or package, and its tests."""
    _rename(path_of(old), _target(path_of(old), "src", new))
    old_tests, new_tests = (name.partition(".")[2] for name in (old, new))
    folder = ROOT / "tests" / old_tests.replace(".", "/")
    if folder.is_dir():
        _rename(folder, ROOT / "tests" / new_tests.replace(".", "/"))
    for kind in ("test_{}.py", "test_{}_oracle.py"):
        parts, targets = old_tests.split("."), new_tests.split(".")
        file = ROOT.joinpath("tests", *parts[:-1], kind.format(parts[-1]))
        if file.exists() and parts[:-1] != targets[:-1]:
            new_file = ROOT.joinpath("tests", *targets[:-1], kind.format(targets[-1]))
            _rename(file, new_file.with_stem(f"{new_file.stem}_numbers") if new_file.exists() else new_file)


def _target(old: Path, root: str, new: str) -> Path:
    place = ROOT / root / new.replace(".", "/")
    return place if old.is_dir() else place.with_suffix(".py")


def _rename(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    if new.is_dir():  # into a package that exists: file by file
        for path in git("ls-files", str(old)).split():
            target = new / (ROOT / path).relative_to(old)
            target.parent.mkdir(parents=True, exist_ok=True)
            git("mv", path, str(target))
    else:
        git("mv", str(old), str(new))


class Names:
    """Old names of modules, and their new ones."""

    def __init__(self, moves: dict[str, str]) -> None:
        self.moves = moves
        longest = sorted(moves, key=len, reverse=True)
        self._dotted = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, longest)) + r")(?!\w)")
        paths = "|".join(re.escape(name.replace(".", "/")) for name in longest)
        self._path = re.compile(r"(?<![\w.-])((?:src/)?)(" + paths + r")(?=[/\"'`)\s.]|$)", re.MULTILINE)
        tests = "|".join(re.escape(name.partition(".")[2].replace(".", "/")) for name in longest)
        self._tests = re.compile(r"\btests/(" + tests + r")(?=[/\"'`)\s]|$)", re.MULTILINE)
        packages = "|".join(re.escape(name.partition(".")[2]) for name in longest)
        self._test_import = re.compile(r"^(\s*from )(" + packages + r")(?=[. ])", re.MULTILINE)
        self._from = re.compile(r"^(\s*(?:>>> |\.\.\. )?)from (judged[\w.]*) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)

    def rewrite(self, text: str, *, of_tests: bool = False) -> str:
        """Return a text with the new names; tests import their helpers from the folders of tests, too."""
        if of_tests:
            text = self._test_import.sub(lambda at: at[1] + self.moves["judged." + at[2]].partition(".")[2], text)
        text = self._from.sub(self._imports, text)
        text = self._dotted.sub(self._renamed, text)
        text = self._path.sub(lambda found: found[1] + self.moves[found[2].replace("/", ".")].replace(".", "/"), text)
        return self._tests.sub(self._test, text)

    def _test(self, found: re.Match[str]) -> str:
        new = self.moves["judged." + found[1].replace("/", ".")]
        return "tests/" + new.partition(".")[2].replace(".", "/")

    def _renamed(self, found: re.Match[str]) -> str:
        old, text = found[1], found.string
        if old.partition(".")[2] in PUBLIC:
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
            before = text[found.start() - 1 : found.start()]
            after = text[found.end() : found.end() + 1]
            if not (
                re.match(r"\s*(>>> |\.\.\. )?(from|import|:::) $", line)
                or (before in {'"', "'"} and after in {'"', "'", "."})
            ):
                return old
        return self.moves[old]

    def _imports(self, found: re.Match[str]) -> str:
        """Rewrite ``from package import module``, where the modules of one line may go to several packages."""
        indent, package, names = found.groups()
        comment = "".join(re.findall(r"  #.*", names))
        listed = [name.strip() for name in re.sub(r"#.*", "", names).strip("() \n").split(",") if name.strip()]
        if not any(f"{package}.{name.split()[0]}" in self.moves for name in listed):
            return found[0]
        by_package: dict[str, list[str]] = {}
        for name in listed:
            plain, *alias = name.split()
            new = self.moves.get(f"{package}.{plain}")
            home, _, own = new.rpartition(".") if new else (package, "", plain)
            alias = alias or (["as", plain] if own != plain else [])
            by_package.setdefault(home, []).append(" ".join([own, *alias]))
        return ("\n" + indent.lstrip("\n")).join(
            f"{indent if at == 0 else ''}from {home} import {', '.join(names)}{comment}"
            for at, (home, names) in enumerate(by_package.items())
        )


def main(*given: str) -> None:
    """Do the moves that are given as OLD=NEW."""
    moves = dict(text.split("=") for text in given)
    for old, new in moves.items():
        move(old, new)
    names = Names(moves)
    for path in map(ROOT.joinpath, git("ls-files").split("\n")):
        if path.is_file() and (path.suffix in ENDINGS or path.name in {"Makefile", "run"}) and path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            new = names.rewrite(text, of_tests=path.is_relative_to(ROOT / "tests"))
            if new != text:
                path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
