"""Show that a change of how results are written changes no number.

``same_numbers.py record FOLDER [--judged SRC] [--only PATTERN]`` runs every line of ``same_numbers/commands.txt`` in
every form that its command has, and asks the workbench every address of ``same_numbers/addresses.txt``; it keeps what
came out. SRC is the ``src`` of another checkout. ``same_numbers.py compare OLD NEW [--only PATTERN]`` says which values
of the old outputs are not in the new ones, and ends with 1 where JSON or CSV lost one or an exit code differs. Keys and
sentences may change; PATTERN is a regular expression that is searched in the command lines.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import html
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[1]
LISTS = Path(__file__).with_suffix("")
SHARED = ROOT.parent / "shared" / "data"
FORMS = {
    "evaluate": "table markdown latex csv json", "compare": "table markdown latex csv json",
    "pool": "table markdown latex csv json", "power": "table markdown latex csv json",
    "agree": "table markdown latex csv json", "curve": "plot table markdown latex csv json",
    "slices": "table markdown csv json", "matrix": "table markdown csv json", "stages": "table markdown csv json",
    "disagree": "table markdown csv json", "needs": "table markdown csv json", "diff": "table markdown csv json",
    "tradeoff": "table markdown csv json", "review": "table markdown csv tsv jsonl json",
    "explain": "table markdown json", "advise": "table markdown json", "gate": "table markdown json junit sarif",
    "report": "text markdown html json",
}  # fmt: skip
_RENAMED = """
--minimum compare=--min-difference slices=--min-topics
--depth stages=--cutoff needs=--cutoff diff=--cutoff
--against stages=--baseline
--against-final stages=--baseline-final
--least stages=--min-loss
--share stages=--min-share
--rate stages=--fdr matrix=--fdr
--worst needs=--limit
--show disagree=--limit diff=--limit
--docs diff=--texts review=--texts report=--texts
--at review=--cutoff
--more-is-better tradeoff=--higher-is-better
--topics power=--n
--level explain=--rel
pool pool=leave-one-out
text report=table
id topic=topic explain=topic document=doc_id
depth topic=cutoff
k evaluator=cutoff
against matrix=baseline slices=baseline
minimum slices=min_topics
show compare=outcome leaderboard=beside
form table=format
"""
RENAMED = {
    (command, old): new
    for old, *now in map(str.split, _RENAMED.strip().splitlines())
    for command, _, new in (name.partition("=") for name in now)
}
"""Arguments, and parameters of addresses, that have another name now, by the command or page and their old one."""
VALUES = {("rule", "below-depth"): "below-cutoff", ("sort", "id"): "query_id", ("quantity", "topics"): "n"}
"""Names among the values, by their key, that are others now."""
KEYS = {
    "topics": "n size", "scored": "n", "num_topics": "n", "n": "n_observed size", "code": "rule", "k": "cutoff",
    "depth": "cutoff rel", "against": "baseline", "reference": "baseline", "topic": "query_id", "rate": "fdr",
    "level": "rel", "shown": "limit significant", "worst": "limit largest_losses", "method": "test", "p": "rbo_p",
}  # fmt: skip
"""Keys of which some have another name now, or one of several: what stands under it has not moved."""

CHECKED = {"json", "jsonl", "sarif", "csv", "tsv", "parquet"}
PICTURES = {"svg", "png", "pdf"}
SUFFIXES = {"txt": "table", "md": "markdown", "tex": "latex", "xml": "junit"}
UNSTABLE = {"judged", "versions", "version", "elapsed", "seconds", "date", "written"}
"""Keys of what may honestly differ."""
LAYOUT = (".sections.parts.kind", ".sections.parts.header")
"""Where a report of old named the kinds of its parts, and the heads of tables that are typed now."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE)
_HONEST = re.compile(
    r"judged \d+\.\d+\.\d+|\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?|/\S*(same-numbers\S*|judged/data/sample/pydocs)/"
)
_SHOWN = 6


def main() -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    jobs = parser.add_subparsers(dest="job", required=True)
    for job, folders in (("record", ("folder",)), ("compare", ("old", "new")), ("ask", ("asked", "folder"))):
        command = jobs.add_parser(job)
        for folder in folders:
            command.add_argument(folder, type=Path)
        command.add_argument("--only", default="", metavar="PATTERN")
        command.add_argument("--judged", type=Path, default=ROOT / "src", metavar="SRC")
        command.add_argument("--jobs", type=int, default=os.cpu_count())
        command.add_argument("--all", action="store_true", help="Name also what is the same.")
    options = parser.parse_args()
    if options.job == "record":
        return record(options.folder, options.judged.resolve(), re.compile(options.only), options.jobs)
    if options.job == "ask":
        return ask(json.loads(options.asked.read_text()), options.folder)
    return compare(options.old, options.new, re.compile(options.only), every=options.all)


# Recording


def record(folder: Path, source: Path, only: re.Pattern[str], jobs: int) -> int:
    """Run what matches, and keep it in the folder: an index, and a file for each output."""
    if (folder / "index.json").exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(source), "LC_ALL": "C.UTF-8"}
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        environment.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="same-numbers-") as made:
        work = Path(made)
        shutil.copytree(source / "judged" / "sample" / "pydocs", work / "sample")
        shutil.copytree(LISTS, work / "made")
        if SHARED.is_dir():
            (work / "data").symlink_to(SHARED)
        lines = _lines("commands.txt")
        for line in lines:
            if line.startswith("first: "):
                run(line.removeprefix("first: "), work, work, environment)
        cases = [case for line in lines if not line.startswith("first: ") for case in _cases(line, work)]
        chosen = [(at, line) for at, line in enumerate(cases) if only.search(line)]
        with ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(lambda case: run(case[1], work, work / f"run{case[0]}", environment), chosen))
        index = {line: _kept(line, result, folder) for (_, line), result in zip(chosen, results, strict=True)}
        asked = [line for line in _lines("addresses.txt") if only.search(line)]
        (work / "asked.json").write_text(json.dumps(asked))
        asking = [sys.executable, __file__, "ask", str(work / "asked.json"), str(folder)]
        if asked:
            subprocess.run(asking, env=environment, cwd=work, check=True)
            index |= json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(index, indent=1))
    print(f"recorded {len(index)} outputs of {source} in {folder}")
    return 0


def _lines(name: str) -> list[str]:
    lines = (LISTS / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _cases(line: str, work: Path) -> Iterator[str]:
    """Give the command line once for each form, or as it is where it begins with "!"; none without its data."""
    if any(not (work / place).exists() for place in re.findall(r"data/\w+", line)):
        return
    if line.startswith("!"):
        yield line[1:].strip()
    else:
        for form in FORMS[line.split(maxsplit=1)[0]].split():
            yield f"{line} --format {form}"


def run(line: str, work: Path, here: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Run one command in a folder of its own, where the inputs stand beside it, and read what it wrote."""
    here.mkdir(exist_ok=True)
    for name in ("sample", "made", "data"):
        if here != work and (work / name).exists():
            (here / name).symlink_to(work / name)
    name, arguments = line.removeprefix("!").split()[0], list[str]()
    for argument in shlex.split(line):
        chosen = work.glob(argument) if "*" in argument and argument.startswith(("sample/", "data/")) else ()
        paths = sorted(str(path.relative_to(work)) for path in chosen)
        arguments += paths or [RENAMED.get((name, argument), argument)]
    command = [sys.executable, "-m", "judged", *arguments]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, check=False, timeout=900)
    files: dict[str, bytes] = {}
    for folder, _, names in os.walk(here) if here != work else ():  # links are not followed
        files |= {str((Path(folder) / name).relative_to(here)): (Path(folder) / name).read_bytes() for name in names}
    return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr, **files}


def _kept(line: str, result: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the outputs of a command to files, and give the entry of the index."""
    slug = re.sub(r"\W+", "-", line)[:80].strip("-") + "-" + hashlib.sha256(line.encode()).hexdigest()[:8]
    form = line.rpartition(" --format ")[2] if " --format " in line else "text"
    outputs: dict[str, dict[str, str]] = {}
    for name, content in result.items():
        if name == "code":
            continue
        suffix = name.removesuffix(".gz").rpartition(".")[2] if name not in {"stdout", "stderr"} else ""
        kept = form if name == "stdout" else "stderr" if name == "stderr" else SUFFIXES.get(suffix, suffix)
        file = folder / f"{slug}.{name.replace('/', '-')}"
        file.write_bytes(content)
        outputs[name] = {"form": kept, "file": file.name}
    return {"code": result["code"], "outputs": outputs}


def ask(addresses: list[str], folder: Path) -> int:
    """Ask the workbench over the sample, in this process."""
    from fastapi.testclient import TestClient

    from judged.web.app import make_app
    from judged.web.workspace import open_sample

    client = TestClient(make_app(open_sample()), raise_server_exceptions=False)
    index: dict[str, Any] = {}
    for address in addresses:
        answer = client.get(address.removeprefix("GET "))
        kind = answer.headers.get("content-type", "").partition(";")[0].rpartition("/")[2]
        kept = _kept(f"{address} --format {kind}", {"code": answer.status_code, "stdout": answer.content}, folder)
        index[address] = kept
    (folder / "index.json").write_text(json.dumps(index))
    return 0


# Comparing


class Value(NamedTuple):
    """A value of a document."""

    path: str
    value: str
    written: bool = False  # as text
    is_key: bool = False

    @property
    def key(self) -> str:
        """The last key above it."""
        return self.path.rpartition(".")[2]


def compare(old: Path, new: Path, only: re.Pattern[str], *, every: bool) -> int:
    """Say for each command what is missing, and how many are the same."""
    before, after = (json.loads((folder / "index.json").read_text()) for folder in (old, new))
    tally: Counter[str] = Counter()
    for line in filter(only.search, before):
        said: list[str] = []
        failed = (named := renamed(line)) not in after
        if failed:
            said.append("it was not recorded anew")
        else:
            was, now = before[line], after[named]
            if was["code"] != now["code"]:
                said.append(f"exit code {was['code']}, now {now['code']}")
                failed = True
            for name, output in was["outputs"].items():
                lost, sentences = _differences(name, output, now["outputs"].get(name), old, new)
                said += sentences
                failed |= lost
        tally["failed" if failed else "with notes" if said else "the same"] += 1
        if said or every:
            print(f"{'FAIL' if failed else 'note' if said else 'same'}  judged {line}")
            print("".join(f"        {sentence}\n" for sentence in said), end="")
    print(f"{sum(tally.values())} outputs: " + ", ".join(f"{count} {name}" for name, count in sorted(tally.items())))
    return 1 if tally["failed"] else 0


def renamed(line: str) -> str:
    """Write an old address as it is now; a command is recorded under its old line.

    >>> renamed("GET /api/v1/topic?id=t1&depth=20"), renamed("GET /compare?show=wins&q=a&k=1"), renamed("pool QRELS")
    ('GET /api/v1/topic?topic=t1&cutoff=20', 'GET /compare?outcome=wins&q=a&k=1', 'pool QRELS')
    """
    path, asked, query = line.partition("?")
    if not line.startswith("GET ") or not asked:
        return line
    page = path.rpartition("/")[2]
    pairs = (pair.partition("=") for pair in query.split("&"))
    return f"{path}?" + "&".join(f"{RENAMED.get((page, name), name)}={value}" for name, _, value in pairs)


def _differences(
    name: str, was: dict[str, str], now: dict[str, str] | None, old: Path, new: Path
) -> tuple[bool, list[str]]:
    """Give whether something is lost that must not be, and sentences on what differs in one output."""
    form = was["form"]
    if now is None:
        return True, [f"{name} was not written"]
    first, second = (old / was["file"]).read_bytes(), (new / now["file"]).read_bytes()
    if form in PICTURES:
        return (True, [f"{name} is empty"]) if first and not second else (False, [])
    if first == second:
        return False, []
    if form not in CHECKED:
        if not first or not second:
            return bool(first) and name != "stderr", [f"{name} {'is' if first else 'was'} empty"]
        had, has = (Counter(_numbers(content, form)) for content in (first, second))
        missing, added = had - has, has - had
        if not missing and not added:
            return False, []
        shown = ", ".join(missing)[:150] or "none"
        return False, [f"{name} ({form}): numbers missing: {shown}; {missing.total()} missing, {added.total()} added"]
    try:
        values, others = list(_values(first, form)), list(_values(second, form, keys=True))
    except (ValueError, csv.Error) as error:
        return True, [f"{name} ({form}) cannot be read: {error}"]
    return _lost(f"{name} ({form})", values, others)


def _lost(name: str, values: list[Value], others: list[Value]) -> tuple[bool, list[str]]:
    """Each of the old values must be among the new ones; a number that was written as text may be there in full."""
    values = [
        one._replace(value=VALUES.get((one.key, one.value), one.value.replace("&k=", "&cutoff="))) for one in values
    ]
    had, has = (Counter(one.value for one in some) for some in (values, others))
    known = sorted(float(value) for value in has if _is_number(value))
    gone = [one for one in values if one.value not in has]
    missing = [one for one in gone if not _close(one, known)]
    keys = {one.key for one in others}
    kept = {(one.key, one.value) for one in others}
    moved = {
        (one.key, one.value)
        for one in values
        if one.key in keys
        and one.value in has
        and not any((key, one.value) in kept for key in (one.key, *KEYS.get(one.key, "").split()))
    }
    lost = len({one.value for one in missing})
    counts = {
        "values": len(had),
        "missing": lost,
        "only in full or but for the last digits": len({one.value for one in gone})
        - len({one.value for one in missing}),
        "added": len({one.value for one in others if not one.is_key} - had.keys()),
        "rarer": sum(1 for value in had if 0 < has[value] < had[value]),
        "only under other keys": len(moved),
    }
    said = [f"{name}: " + ", ".join(f"{count} {what}" for what, count in counts.items())]
    for one in missing[:_SHOWN]:
        near = f" (nearest: {_nearest(known, float(one.value))!r})" if known and _is_number(one.value) else ""
        said.append(f"  missing {one.value} at {one.path}{near}")
    said += [f"  no more under its key: {key} {value}" for key, value in sorted(moved)[:_SHOWN]]
    return bool(missing), said if any(list(counts.values())[1:]) else []


def _close(one: Value, known: list[float]) -> bool:
    """Say whether a number is there but for its last digits, which sums in parallel may change, or was rounded."""
    bare, scale = (one.value[:-1], 100) if one.value.endswith("%") else (one.value, 1)
    bare = bare.replace("−", "-").lstrip("+")
    if not known or not _is_number(bare):
        return False
    near, places = scale * _nearest(known, float(bare) / scale), len(bare.partition(".")[2])
    apart = abs(near - float(bare))
    return apart <= (0.51 * 10**-places if one.written else 1e-12 * abs(near))


def _nearest(known: list[float], value: float) -> float:
    at = bisect(known, value)
    return min(known[max(0, at - 1) : at + 1], key=lambda other: abs(other - value))


def _is_number(value: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", value))


def _numbers(content: bytes, form: str) -> Iterator[str]:
    """Give the numbers of a text as they are written."""
    text = content.decode(errors="replace")
    if form == "html":
        text = html.unescape(re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL))
    text = _HONEST.sub(" ", text.replace("−", "-").replace("\\_", "_").replace("$-$", "-"))
    return (found.group().rstrip(",.") for found in _NUMBER.finditer(text))


def _values(content: bytes, form: str, *, keys: bool = False) -> Iterator[Value]:
    """Give all numbers, truths, nothings, and strings without a space; keys too, where asked for."""
    if form == "parquet":
        from pyarrow import parquet

        rows: list[Any] = [parquet.read_table(io.BytesIO(content)).to_pydict()]
    elif form in {"json", "sarif"}:
        rows = [json.loads(content)]
    elif form == "jsonl":
        rows = [json.loads(line) for line in content.splitlines()]
    else:
        text = io.StringIO(content.decode(), newline="")
        table = csv.DictReader(text, delimiter="\t" if form == "tsv" else ",")
        rows = [{str(key): _cell(str(cell)) for key, cell in row.items()} for row in table]
    for row in rows:
        yield from _within(row, "", keys=keys)


def _cell(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text.lower() == "true" if text.lower() in {"true", "false"} else text.removeprefix("'")


def _within(value: Any, path: str, *, keys: bool) -> Iterator[Value]:
    if isinstance(value, dict):
        for key, part in value.items():
            if keys:
                yield Value(path, key, is_key=True)
            if key not in UNSTABLE or isinstance(part, int | float):
                yield from _within(part, f"{path}.{key}", keys=keys)
    elif isinstance(value, list):
        for part in value:
            yield from _within(part, path, keys=keys)
    elif value is None or isinstance(value, bool):
        yield Value(path, json.dumps(value))
    elif isinstance(value, int | float):
        whole = value == value // 1 and abs(value) < 2**53
        yield Value(path, str(int(value)) if whole else repr(float(value)))
    elif value and path not in LAYOUT and not re.search(r"\s", value) and not _HONEST.search(value):
        yield Value(path, value, written=True)


if __name__ == "__main__":
    sys.exit(main())
