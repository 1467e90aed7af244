"""``python -m fuzz.web [REQUESTS [UPLOADS]] [--seed N]``: what nobody should send to a workbench.

The server is a process of its own, and somebody looks at a page meanwhile. Requests name pages, twins and tables with
parameters that they know and values that make no sense; uploads are damaged files. It ends 1 where an answer is the
server's fault, or none comes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from fuzz.mutations import WORDS, mutated, soup
from fuzz.originals import documents, facts, qrels, runs, tables, topics, trec_qrels, trec_runs
from judged.web.app import ROUTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_VALUES = (
    *WORDS, "bm25", "rrf", "t01", "nDCG@10", "AP", "RR(rel=2)", "nDCG@999999999", "P(", "kind == 'question'", "x ==",
    "((((", "not " * 400 + "x", "(" * 1900, "a" * 9000, "{{7*7}}", "<script>", "%00", "../../etc/passwd", "2,0,1",
    "=1+1", "\ud7ff", "DCG(gain={3:1e308})@10", "RBP(p=1)", "-nDCG@10", "query_class", "*", "1e308",
)  # fmt: skip
_LOOKED_AT = "/evaluator?list=2,0,1"
PATIENCE = 120  # seconds for an answer


class Report(NamedTuple):
    """What came of it."""

    answers: Counter[int]  # by status
    faults: list[str]  # requests whose answer was the server's fault, or never came
    waits: list[float]  # seconds for the page that somebody looked at meanwhile
    idle: list[float]  # seconds that a pause of 50 ms took here at the same time: how busy the machine is by itself
    slow: list[tuple[float, str]]  # seconds and addresses


def parameters() -> dict[str, list[str]]:
    """Give every path that can be asked, with the parameters that it knows."""
    found: dict[str, list[str]] = {}
    for router in ROUTERS:
        for route in router.routes:
            models = [given.field_info.annotation for given in route.dependant.query_params]
            fields = [model.model_fields for model in models if hasattr(model, "model_fields")]
            found[route.path] = [name for each in fields for name in each]
    return found


def request(random: Random, paths: dict[str, list[str]]) -> tuple[str, str, bytes | None, dict[str, str]]:
    """Draw a method, an address, a body and headers."""
    path = random.choice(sorted(paths))
    pairs = [(random.choice(paths[path]), random.choice(_VALUES)) for _ in range(random.randrange(6)) if paths[path]]
    path = re.sub(r"\{[^}]*\}", lambda _: random.choice(("nDCG", "AP", "x", "..", "%ff")), path)
    if random.random() < 0.1:
        path += (
            f".{random.choice(('board', 'topics', 'x', 'a/b', '%00'))}.{random.choice(('csv', 'json', 'tex', 'md'))}"
        )
    address = f"{path}?{urlencode(pairs, errors='replace')}" if pairs else path
    method = random.choices(("GET", "POST", "HEAD", "PUT", "OPTIONS"), (80, 12, 4, 2, 2))[0]
    body = None
    if method in {"POST", "PUT"} and "/open" not in path:
        known = json.dumps({random.choice(("list", "judge", "measures", "x")): random.choice(_VALUES)}).encode()
        body = random.choice((known, mutated(known, random), soup(random)))
    kind = random.choice(("application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"))
    return method, address, body, {"Content-Type": kind} if body else {}


def originals() -> dict[str, list[Any]]:
    """Give intact files by what they are opened as."""
    return {
        "qrels": [*trec_qrels(), *qrels()],
        "runs": [*trec_runs(), *runs()],
        "queries": topics(),
        "attributes": tables(facts("query_id")),
        "documents": documents(),
    }


def upload(random: Random, intact: dict[str, list[Any]]) -> tuple[str, str, bytes, dict[str, str]]:
    """Draw damaged files in the roles of judgments, runs and what else can be opened."""
    parts: list[bytes] = []
    for role in ("qrels", "runs", "runs", *random.sample(("queries", "attributes", "documents"), random.randrange(3))):
        original = random.choice(intact[role])
        data = original.data if random.random() < 0.3 else mutated(original.data, random)
        head = f'--limit\r\nContent-Disposition: form-data; name="{role}"; filename="x{original.ending}"\r\n\r\n'
        parts += [head.encode(), data, b"\r\n"]
    body = b"".join([*parts, b"--limit--\r\n"])
    body = mutated(body, random) if random.random() < 0.1 else body
    return "POST", "/api/v1/open", body, {"Content-Type": "multipart/form-data; boundary=limit"}


@contextmanager
def server() -> Iterator[int]:
    """Start a workbench over the sample, and give its port."""
    command = [sys.executable, "-m", "judged", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(int(found[1]) for line in process.stdout or () if (found := re.search(r":(\d+)/", line)))
        finally:
            process.terminate()


def ask(port: int, method: str, address: str, body: bytes | None, headers: dict[str, str]) -> int:
    """Give the status of an answer, once all of it is there."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, address, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def attack(port: int, requests: int, uploads: int, seed: int = 0) -> Report:
    """Send all of them, requests from two sides beside the uploads, and look at a page meanwhile."""
    paths, intact, report, ended = parameters(), originals(), Report(Counter(), [], [], [], []), threading.Event()

    def send(drawn: tuple[str, str, bytes | None, dict[str, str]], number: int) -> None:
        begun = time.perf_counter()
        try:
            status = ask(port, *drawn)
        except (OSError, HTTPException) as error:
            report.faults.append(f"{number}: {drawn[:2]!r:.300}: {error!r}")
            return
        report.answers[status] += 1
        report.slow.append((time.perf_counter() - begun, f"{drawn[0]} {drawn[1]:.200}"))
        # 501: what an extra brings is not installed.
        if status >= 500 and status != 501:
            report.faults.append(f"{number}: {drawn[:2]!r:.300} {drawn[2]!r:.100}: {status}")

    def drawn(number: int) -> tuple[str, str, bytes | None, dict[str, str]]:
        return request(Random(f"{seed} r {number}"), paths)

    def look() -> None:
        paused = time.perf_counter()
        while not ended.wait(0.05):
            begun = time.perf_counter()
            report.idle.append(begun - paused)
            ask(port, "GET", _LOOKED_AT, None, {})
            paused = time.perf_counter()
            report.waits.append(paused - begun)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            sent = [pool.submit(lambda: [send(upload(Random(f"{seed} u {at}"), intact), at) for at in range(uploads)])]
            for side in range(2):
                numbers = range(side, requests, 2)
                sent.append(pool.submit(lambda numbers=numbers: [send(drawn(at), at) for at in numbers]))
            for future in sent:
                future.result()
    finally:
        ended.set()
        watching.join()
    return report


def main() -> int:
    """Attack, and say what came of it."""
    read = argparse.ArgumentParser(prog="python -m fuzz.web", description=__doc__)
    read.add_argument("requests", type=int, nargs="?", default=8000)
    read.add_argument("uploads", type=int, nargs="?", default=1000)
    read.add_argument("--seed", type=int, default=0)
    given = read.parse_args()
    begun = time.perf_counter()
    with server() as port:
        report = attack(port, given.requests, given.uploads, given.seed)
    waits = sorted(report.waits)
    seconds, answers = time.perf_counter() - begun, dict(sorted(report.answers.items()))
    print(f"{given.requests:,} requests and {given.uploads:,} uploads in {seconds:.0f} s; answers: {answers}")
    for what, taken in (("a page meanwhile", waits), ("a pause of 0.050 s", sorted(report.idle))):
        parts = ", ".join(
            f"{name} {taken[int(len(taken) * part)]:.3f}" for name, part in (("median", 0.5), ("99 %", 0.99))
        )
        print(f"{what}, {len(taken):,} times: {parts}, longest {taken[-1]:.3f} s")
    for seconds, address in sorted(report.slow, reverse=True)[:5]:
        print(f"{seconds:8.2f} s {address}")
    print("\n".join(report.faults) or "no answer was the server's fault")
    return bool(report.faults)


if __name__ == "__main__":
    sys.exit(main())
