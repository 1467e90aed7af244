"""Run random commands of the command tree in this process, on files of which some are damaged.

A case is a JSON document: the arguments, the damaged files, and the standard input. Its exit code must mean results,
wrong input, or output that cannot be written. An error must be one line without a traceback, and the command must not
write outside its folder.

Excluded are ``serve`` and ``study run``, which wait for requests, and most cases of ``experiment run``, which starts
processes. ``demo`` and ``watch`` end immediately, and connections to models and engines over HTTP fail immediately.
"""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from every_command import ARGUMENTS, commands, write_files
from fuzz.mutations import NUMBERS, WORDS, mutated, soup
from fuzz.originals import Original
from fuzz.readers import Reader, WrongError
from judged.cli.main import main
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from random import Random

LEFT_OUT = ("serve", "study run")
"""Commands that wait for requests."""
SELDOM = ("experiment run", "report", "change review")
"""Commands that take long, and are a tenth as frequent."""
READ_LOGS = ("clicks", "logs", "online")
"""Groups of commands that take half of the time, and are 2.5 times less frequent; `fuzz.logs` reads more logs."""
_NAMES = (
    "nDCG@10", "AP", "RR(rel=2)", "P@5", "R@5", "nDCG@999999999", "DCG(gain={3:1e308})@10", "RBP(p=1)", "NuggetRecall",
    "PageCTR", "q1", "d1", "kind", "text", "old", "new", "first", "last", "bm25", "ann", "bob", "query_id", "doc_id",
    "satisfaction", "milliseconds", "bad", "RCTR", "DBN", "action", "user", "human", "model", "holm", "none", "1-10",
    "old=new", "old=0.5", "=", "a=b=c", "kind == 'a'", "x ==", "n_hits > 1", "((((", "1,2,3", "10,5", "0.1,0.2", "csv",
    "2026-03-05", "2026-13-45", "day", "html", "128MB", "ubi", "graphcm",
)  # fmt: skip
_USUAL_VALUES: dict[str, tuple[str, ...]] = {  # sensible values by the name of an option
    "measures": ("nDCG@10", "AP", "RR(rel=2)", "P@5", "Rprec", "bpref", "ERR@10", "RBP(p=0.8)", "NuggetRecall"),
    "metrics": ("PageCTR", "MeanClickRank", "ZeroResultRate", "AbandonmentRate"),
    "by": ("kind", "text", "query_id", "device", "user_id", "mean", "median", "majority", "query"),
    "topic": ("q1", "q7"),
    "where": ("kind == 'a'", "kind != 'b'", "n_hits > 1", "length(text) > 3"),
    "slice_by": ("kind", "kind,text"),
    "baseline": ("old", "new", "0"),
    "judge": ("ann", "bob", "model"),
    "model": ("RCTR", "DBN", "SDBN", "PBM"),
    "cutoffs": ("1,5,10", "3"),
    "cuts": ("0.2,0.8",),
    "since": ("2026-01-03", "2026-03-05"),
    "as_of": ("2026-01-03",),
    "freshness_bands": ("7,30",),
    "digits": ("2", "4", "6"),
    "level": ("0.9", "0.95"),
    "alpha": ("0.05", "0.1"),
    "power": ("0.8", "0.9"),
    "fdr": ("0.1",),
    "final": ("shown", "bm25"),
    "stage": ("first=old.run", "bm25=new.run"),
    "stages": ("first=old.run", "bm25=new.run"),
}  # fmt: skip
_ODD_NAMES = ("", ".", "..", "no/such/file", "a" * 300, "qrels.txt/x", "x\ny", "\udcff", "é.csv", "-", "--", "\x1b[31m")
_SMALL = ("1", "2", "3", "5", "10", "50", "0", "-1", "x", "", "1.5", "1e3", "9" * 30)
_SLOW = {"resamples", "iterations", "folds", "steps", "processes", "threads", "memory"}  # more of them takes longer
_OUTPUT_OPTIONS = (
    "-o", "--to", "--into", "--out", "--output", "--json", "--markdown", "--junit", "--sarif", "--prometheus",
)  # fmt: skip
_ENDINGS = ("csv", "json", "md", "html", "txt", "tex", "jsonl", "run", "db", "toml", "x")
_SLOW_FORMS = ("png", "svg", "pdf", "html")
_UNTOUCHED = ("endpoint.toml",)  # else requests would go to other hosts, or be tried again for hours
_CODES = {0, 1, 2, 74}
_WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate"}
_FREE = ("/dev/null", "/proc/self/")


def command_readers(folder: Path) -> list[Reader]:
    """Return a reader for each command; `folder` is the only folder where they may write."""
    workplace = _Workplace(folder)
    names = [name for name, _ in commands() if name not in LEFT_OUT]
    log_commands = [name for name in names if name.split()[0] in READ_LOGS]
    frequent = [name for name in names if name not in (*SELDOM, *log_commands)]
    return [
        Reader(
            f"judged {name}",
            workplace.run,
            [Original(".json", _case((*name.split(), *ARGUMENTS[name]), {}))],
            partial(_random_case, name, workplace.files),
        )
        for name in (*frequent * 10, *log_commands * 3, *names)
    ]


def _case(arguments: Iterable[str], damaged: dict[str, bytes], stdin: bytes = b"") -> bytes:
    files = {name: base64.b64encode(data).decode() for name, data in damaged.items()}
    return json.dumps({
        "arguments": list(arguments), "damaged": files, "given": base64.b64encode(stdin).decode()
    }).encode()  # fmt: skip


def _random_case(name: str, files: dict[str, bytes], random: Random) -> bytes:
    """Draw a command line: mostly the usual one, with more options, some words changed, and damaged files."""
    line = list(ARGUMENTS[name])
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        line += _random_option(random.choice(_parameters()[name]), files, random) if _parameters()[name] else []
    for _ in range(random.choice((0, 0, 0, 0, 0, 0, 1, 2))):
        line = _other_words(line, files, random)
    if (
        "threads" in {option.name for option in _parameters()[name]}
        and "--threads" not in line
        and random.random() < 0.9
    ):
        line += ["--threads", "1"]
    line = ["x" if _leaves_folder(word) else word.replace("\0", "") for word in line]
    used_files = [file for file in files if any(file == word or file.startswith(f"{word}/") for word in _parts(line))]
    used_files = [file for file in used_files if file not in _UNTOUCHED] or ["qrels.txt"]
    damaged: dict[str, bytes] = {}
    for file in random.sample(used_files, min(len(used_files), random.choice((0, 0, 1, 1, 2)))):
        damaged[file] = soup(random) if random.random() < 0.05 else mutated(files[file], random)
    stdin = mutated(files[random.choice(list(files))], random) if "-" in line else b""
    return _case((*name.split(), *line), damaged, stdin)


def _parts(line: list[str]) -> list[str]:
    return [part for word in line for part in (word, *word.replace(",", "=").split("="))]


def _leaves_folder(word: str) -> bool:
    """Return whether a word could name a file outside of the folder, or an address."""
    return "://" in word or any(part.startswith(("/", "~")) or ".." in part.split("/") for part in _parts([word]))


@cache
def _parameters() -> dict[str, list[click.Parameter]]:
    options_by_command = {
        name: [option for option in command.params if isinstance(option, click.Option)] for name, command in commands()
    }
    return {
        name: [option for option in options if option.name != "help"] for name, options in options_by_command.items()
    }


def _random_option(option: Any, files: dict[str, bytes], random: Random) -> list[str]:
    """Draw a value for an option."""
    flag = random.choice([*option.opts, *option.secondary_opts])
    if option.is_flag:
        return [flag]
    return [flag, *(_random_value(option, files, random) for _ in range(option.nargs))]


def _random_value(option: Any, files: dict[str, bytes], random: Random) -> str:
    draw, type_name = random.random(), type(option.type).__name__
    if draw < 0.04:
        return random.choice(_ODD_NAMES)
    if draw < 0.06:
        return random.choice(WORDS)
    if isinstance(option.type, click.Choice):
        choices = [choice for choice in option.type.choices if choice not in _SLOW_FORMS or random.random() < 0.1]
        return str(random.choice(choices or ["x"]))
    if option.name in _USUAL_VALUES and draw < 0.8:
        return random.choice(_USUAL_VALUES[option.name])
    if option.name in _SLOW:
        return random.choice(("1", "2", "3", "-1", "0", "x", "0.5"))
    if type_name.startswith(("Int", "Float")) or option.metavar in {"N", "K", "D", "S", "X", "SHARE", "GRADE", "W"}:
        numbers = "1 2 3 5 7 10" if type_name.startswith("Int") else "0.1 0.5 0.95 1 2 5"
        return random.choice(NUMBERS if draw < 0.15 else _SMALL if draw < 0.3 else numbers.split())
    if any(word in _OUTPUT_OPTIONS for word in option.opts):
        return f"out.{random.choice(_ENDINGS)}" if random.random() < 0.8 else random.choice((*files, *_ODD_NAMES))
    if "FILE" in str(option.metavar) or "FOLDER" in str(option.metavar) or random.random() < 0.3:
        return _file(files, random)
    return random.choice(_NAMES)


def _file(files: dict[str, bytes], random: Random) -> str:
    name = random.choice(list(files))
    return name.split("/")[0] if random.random() < 0.7 else name


def _other_words(line: list[str], files: dict[str, bytes], random: Random) -> list[str]:
    """Omit a word, double it, replace it, or exchange two."""
    index, draw = random.randrange(len(line) + 1), random.random()
    other = random.choice(
        (_file(files, random), random.choice(_NAMES), random.choice(_ODD_NAMES), random.choice(WORDS))
    )
    if draw < 0.2:
        return line[:index] + line[index + 1 :]
    if draw < 0.3:
        return [*line[:index], other, *line[index:]]
    if draw < 0.8 or len(line) < 2:
        return [*line[:index], other, *line[index + 1 :]]
    if draw < 0.9:
        return [*line[:index], *line[index : index + 1], *line[index:]]
    words, other_index = list(line), random.randrange(len(line))
    index = min(index, len(line) - 1)
    words[index], words[other_index] = words[other_index], words[index]
    return words


class _Workplace:
    """A folder with the files of every command, the same before each of them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve()
        self.cwd = self.root / "below" / "work"  # a name that begins with .. stays in the folder
        intact = self.root / "intact"
        write_files(intact)
        paths = {str(file.relative_to(intact)): file for file in sorted(intact.rglob("*")) if file.is_file()}
        self.files = {name: file.read_bytes() for name, file in paths.items()}
        self.intact_state: dict[str, tuple[int, int]] = {}  # sizes and times of the files that are as they should be
        self.tmp = self.root / "tmp"
        self.tmp.mkdir(exist_ok=True)
        _watch_writing()

    def _state(self) -> dict[str, tuple[int, int]]:
        state: dict[str, tuple[int, int]] = {}
        for folder, _, names in os.walk(self.cwd):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118  faster: called for every file of every case
                status = os.lstat(path)
                state[path[len(str(self.cwd)) + 1 :]] = (status.st_size, status.st_mtime_ns)
        return state

    def restore(self, damaged: dict[str, bytes]) -> None:
        """Restore the files before the last command, except files to be damaged."""
        state = self._state()
        for name in state.keys() - self.files.keys():
            (self.cwd / name).unlink()
        for name, data in self.files.items():
            if name in damaged or name not in state or state[name] != self.intact_state.get(name):
                path = self.cwd / name
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_bytes(damaged.get(name, data))
        self.intact_state = {
            name: size_and_time for name, size_and_time in self._state().items() if name not in damaged
        }
        folders = {Path(name).parent for name in self.files}
        for folder, _, names in os.walk(self.cwd, topdown=False):
            path = Path(folder)
            if (
                not names
                and path != self.cwd
                and not any(path.relative_to(self.cwd) in (parent, *parent.parents) for parent in folders)
            ):
                shutil.rmtree(path)

    def run(self, path: Path) -> None:
        """Run a case; an exit code for wrong input raises an error that contains the case."""
        case = json.loads(path.read_bytes())
        self.restore({name: base64.b64decode(data) for name, data in case["damaged"].items()})
        code, out, err = self.run_main(case["arguments"], base64.b64decode(case["given"]))
        outside = [*_outside_of_folder]
        description = f"{case['arguments']} ended with {code}: {err[-1500:]}"
        if outside:
            raise WrongError(f"{case['arguments']} writes {outside[0]}")
        is_trec_eval = case["arguments"][:1] == ["trec_eval"]  # which has exit codes of its own
        if code not in _CODES and not (is_trec_eval and code in range(256) and code != 70):
            raise WrongError(description)
        if "Traceback (most recent call last)" in out + err:
            raise WrongError(f"a traceback: {description}")
        if not is_trec_eval:
            _check_message(code, err, description)
        if code in {2, 74}:
            raise InputError(f"ended with {code}", path=str(path))

    def run_main(self, arguments: list[str], stdin: bytes) -> tuple[Any, str, str]:
        """Run the command line in this process, and return its exit code and output."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
        before = sys.argv, list(sys.meta_path), (sys.stdin, sys.stdout, sys.stderr), os.getcwd()  # noqa: PTH109
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
        with _only_in(self.root), warnings.catch_warnings(), _environment(self.tmp):
            sys.argv = ["judged", *arguments]
            sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin), "utf-8"), out, err
            os.chdir(self.cwd)
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.argv, sys.meta_path[:], (sys.stdin, sys.stdout, sys.stderr), folder = before
                os.chdir(folder)
                sys.unraisablehook = sys.__unraisablehook__
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return code, *(file.buffer.getvalue().decode() for file in (out, err))  # type: ignore[attr-defined]


def _check_message(code: object, err: str, description: str) -> None:
    """Check that only the last line describes the error."""
    message_lines = [number for number, line in enumerate(err.split("\n")) if line.startswith("error: ")]
    if code in {2, 74} and not message_lines and "Usage:" not in err:
        raise WrongError(f"no error message: {description}")
    if message_lines and message_lines[-1] != err.removesuffix("\n").count("\n"):
        raise WrongError(f"a message of several lines: {description}")


_outside_of_folder: list[str] = []
_inside: list[str] = []  # the folder in which may be written, while a command runs


@contextmanager
def _only_in(folder: Path) -> Generator[None]:
    _outside_of_folder.clear()
    _inside.append(str(folder))
    try:
        yield
    finally:
        _inside.clear()


@contextmanager
def _environment(tmp: Path) -> Generator[None]:
    variables, temporary_folder = dict(os.environ), tempfile.tempdir
    tempfile.tempdir = str(tmp)
    os.environ |= dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(tmp))
    os.environ |= {"JUDGED_TRACEBACK": "1", "COLUMNS": "100"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= variables
        tempfile.tempdir = temporary_folder


@cache
def _watch_writing() -> None:
    """Prevent and record writes outside of the folder; prevent every connection."""
    sys.dont_write_bytecode = True
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # a copy of standard input stays open until the end

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if not _inside:
            return
        if event in {"socket.connect", "socket.getaddrinfo"}:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "no connection in a fuzz")
        writes = event in _WRITES or (event == "open" and _opens_for_writing(args))
        for path in args[: 2 if event in {"os.rename", "os.link"} else 1] if writes else ():
            if isinstance(path, (str, bytes, os.PathLike)) and not _allowed(os.path.abspath(os.fsdecode(path))):  # noqa: PTH100
                _outside_of_folder.append(f"{event} {os.fsdecode(path)}")  # noqa: PERF401

    sys.addaudithook(hook)


def _opens_for_writing(args: tuple[Any, ...]) -> bool:
    _, mode, flags = args
    return any(sign in (mode or "") for sign in "wax+") or bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _allowed(path: str) -> bool:
    return path.startswith((f"{_inside[0]}/", *_FREE)) or path == _inside[0]
