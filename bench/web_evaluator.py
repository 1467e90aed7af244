"""Measure the time from a key press in the evaluator to the updated numbers on the screen, in Chromium.

`judged serve` runs in a separate process. A list of 20 results is edited by keyboard; grades and moves alternate. The
time is from the key event on the page to a task after the frame with the new numbers.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from browser import chromium

GRADES = (3, 0, 2, 1, 0, 3, 1, 0, 0, 2, 1, 0, 3, 0, 0, 1, 2, 0, 0, 1)
PAUSE = 120  # milliseconds

# The page dispatches the key events itself, because remote control of the browser would use CPU time.
PRESS = """async ({ changes, seed, pause, rows }) => {
  const times = { total: [], server: [], paint: [] };
  let state = seed;
  const random = (limit) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * limit);
  };
  const wait = (time) => new Promise((resolve) => setTimeout(resolve, time));
  const afterFrame = () => new Promise((resolve) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  }));
  const press = (key, options = {}) =>
    document.activeElement.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options }));
  const change = () => {
    if (random(2)) {
      const keys = ["0", "1", "2", "3"].filter((key) => key !== document.activeElement.dataset.grade);
      return press(keys[random(keys.length)]);
    }
    const index = [...document.querySelectorAll("#list .row")].indexOf(document.activeElement.closest(".row"));
    const down = index === 0 || (index < rows - 1 && random(2));
    return press(down ? "ArrowDown" : "ArrowUp", { altKey: true });
  };
  document.querySelector("#list [role=radio][aria-checked=true]").focus();
  for (let count = 0; count < changes; count += 1) {
    for (let moves = random(4); moves > 0; moves -= 1) {
      press(random(2) ? "ArrowUp" : "ArrowDown");
      await wait(pause / 2);
    }
    await wait(pause / 2 + random(pause));
    performance.clearResourceTimings();
    const evaluated = new Promise((resolve) => document.addEventListener("evaluated", resolve, { once: true }));
    const pressTime = performance.now();
    change();
    await evaluated;
    const evaluationTime = performance.now();
    await afterFrame();
    times.total.push(performance.now() - pressTime);
    times.paint.push(performance.now() - evaluationTime);
    const request = performance.getEntriesByType("resource")
      .find((entry) => /\\/evaluator(\\/numbers)?\\?/.test(entry.name));
    times.server.push(request.responseEnd - (request.requestStart || request.startTime));
  }
  return times;
}"""


def main() -> None:
    """Measure the times of key presses, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--second", action="store_true", help="with a second list")
    options = parser.parse_args()
    query = "list=" + ",".join(map(str, GRADES)) + "&cutoff=10"
    if options.second:
        query += "&other=" + ",".join(map(str, GRADES))
    with _serve() as address, chromium() as browser:
        for number in range(options.rounds):
            size = {"width": 1280, "height": 900}
            page = browser.new_page(viewport=size, bypass_csp=True)  # playwright waits by eval
            page.goto(f"{address}/evaluator?{query}")
            times = _press(page, options.changes, number)
            print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}: {len(times['total'])} changes")
            for name, label in _LABELS.items():
                print(f"  {label:34} {_summary(times[name])}")
            page.close()


_LABELS = {
    "total": "from key to screen",
    "server": "part: request and response",
    "paint": "part: layout and paint",
}


@contextmanager
def _serve() -> Iterator[str]:
    """Run the command in a separate process, as for a user; yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "judged", "serve", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while not _answers(address):
            time.sleep(0.05)
        yield address
    finally:
        server.terminate()
        server.wait()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/api/v1/evaluator", timeout=5):  # noqa: S310 - our own URL
            return True
    except OSError:
        return False


def _press(page: Any, changes: int, seed: int) -> dict[str, list[float]]:
    """Change grades and move rows, each after the previous change is visible and a pause has passed."""
    page.wait_for_selector("html[data-ready]")
    return page.evaluate(PRESS, {"changes": changes, "seed": seed + 1, "pause": PAUSE, "rows": len(GRADES)})


def _summary(times: list[float]) -> str:
    ordered = sorted(times)
    p95 = ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
    return f"median {statistics.median(ordered):5.1f} ms, p95 {p95:5.1f} ms, max {ordered[-1]:5.1f} ms"


if __name__ == "__main__":
    main()
