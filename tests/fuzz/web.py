"""Send invalid requests to a workbench: ``python -m fuzz.web [REQUESTS [UPLOADS]] [--seed N]``.

The server is a separate process, and another client requests a page at the same time. Requests are for pages, their
JSON versions, and tables, with valid parameters and invalid values; uploads are damaged files. The exit code is 1 if a
response is a server error, or is missing.
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
    """Results of an attack."""

    answers: Counter[int]  # by status
    faults: list[str]  # requests whose answer was the server's fault, or never came
    page_seconds: list[float]  # response times of a page that is requested all the time
    pause_seconds: list[float]  # what pauses of 50 ms took at the same time: how busy the machine itself is
    slow: list[tuple[float, str]]  # seconds and addresses


def parameters() -> dict[str, list[str]]:
    """Return the query parameters of every path."""
    parameters_by_path: dict[str, list[str]] = {}
    for router in ROUTERS:
        for route in router.routes:
            models = [parameter.field_info.annotation for parameter in route.dependant.query_params]
            fields = [model.model_fields for model in models if hasattr(model, "model_fields")]
            parameters_by_path[route.path] = [name for fields_of_model in fields for name in fields_of_model]
    return parameters_by_path


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
        json_body = json.dumps({random.choice(("list", "judge", "measures", "x")): random.choice(_VALUES)}).encode()
        body = random.choice((json_body, mutated(json_body, random), soup(random)))
    types = "application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"
    content_type = random.choice(types)
    return method, address, body, {"Content-Type": content_type} if body else {}


def originals() -> dict[str, list[Any]]:
    """Return intact files by role."""
    return {
        "qrels": [*trec_qrels(), *qrels()],
        "runs": [*trec_runs(), *runs()],
        "queries": topics(),
        "attributes": tables(facts("query_id")),
        "documents": documents(),
    }


def upload(random: Random, intact: dict[str, list[Any]]) -> tuple[str, str, bytes, dict[str, str]]:
    """Generate damaged files as judgments, runs, and other files that can be opened."""
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
    """Start a workbench over the sample, and yield its port."""
    command = [sys.executable, "-m", "judged", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(int(match[1]) for line in process.stdout or () if (match := re.search(r":(\d+)/", line)))
        finally:
            process.terminate()


def send_request(port: int, method: str, address: str, body: bytes | None, headers: dict[str, str]) -> int:
    """Send a request and return its status once the whole response has arrived."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, address, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def attack(port: int, requests: int, uploads: int, seed: int = 0) -> Report:
    """Send all requests in two threads and the uploads in a third, and time a page meanwhile."""
    paths, intact, report, ended = parameters(), originals(), Report(Counter(), [], [], [], []), threading.Event()

    def send(arguments: tuple[str, str, bytes | None, dict[str, str]], number: int) -> None:
        start = time.perf_counter()
        try:
            status = send_request(port, *arguments)
        except (OSError, HTTPException) as error:
            report.faults.append(f"{number}: {arguments[:2]!r:.300}: {error!r}")
            return
        report.answers[status] += 1
        report.slow.append((time.perf_counter() - start, f"{arguments[0]} {arguments[1]:.200}"))
        # 501: what an extra brings is not installed.
        if status >= 500 and status != 501:
            report.faults.append(f"{number}: {arguments[:2]!r:.300} {arguments[2]!r:.100}: {status}")

    def random_request(number: int) -> tuple[str, str, bytes | None, dict[str, str]]:
        return request(Random(f"{seed} r {number}"), paths)

    def random_upload(number: int) -> tuple[str, str, bytes | None, dict[str, str]]:
        return upload(Random(f"{seed} u {number}"), intact)

    def time_page() -> None:
        pause_start = time.perf_counter()
        while not ended.wait(0.05):
            start = time.perf_counter()
            report.pause_seconds.append(start - pause_start)
            send_request(port, "GET", _LOOKED_AT, None, {})
            pause_start = time.perf_counter()
            report.page_seconds.append(pause_start - start)

    page_timer = threading.Thread(target=time_page)
    page_timer.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(lambda: [send(random_upload(number), number) for number in range(uploads)])]
            for parity in range(2):
                numbers = range(parity, requests, 2)
                futures.append(pool.submit(lambda ns=numbers: [send(random_request(n), n) for n in ns]))
            for future in futures:
                future.result()
    finally:
        ended.set()
        page_timer.join()
    return report


def main() -> int:
    """Attack, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.web", description=__doc__)
    parser.add_argument("requests", type=int, nargs="?", default=8000)
    parser.add_argument("uploads", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    with server() as port:
        report = attack(port, options.requests, options.uploads, options.seed)
    waits = sorted(report.page_seconds)
    seconds, answers = time.perf_counter() - start, dict(sorted(report.answers.items()))
    print(f"{options.requests:,} requests and {options.uploads:,} uploads in {seconds:.0f} s; answers: {answers}")
    for label, seconds_sorted in (("a page meanwhile", waits), ("a pause of 0.050 s", sorted(report.pause_seconds))):
        quantiles = ", ".join(
            f"{name} {seconds_sorted[int(len(seconds_sorted) * quantile)]:.3f}"
            for name, quantile in (("median", 0.5), ("99 %", 0.99))
        )
        print(f"{label}, {len(seconds_sorted):,} times: {quantiles}, longest {seconds_sorted[-1]:.3f} s")
    for seconds, address in sorted(report.slow, reverse=True)[:5]:
        print(f"{seconds:8.2f} s {address}")
    print("\n".join(report.faults) or "no answer was the server's fault")
    return bool(report.faults)


if __name__ == "__main__":
    sys.exit(main())
