"""Write docs/simulated-study.md, a user study of two rankers with simulated participants, from design to report.

The participants use the same forms as people. The tests compare the page with the output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from fastapi.testclient import TestClient

from judged import Qrels
from judged.data import sample
from judged.interface.pages.guard import LOOPBACK, Rules
from judged.studies import first_design, read_design
from judged.studies.assignment import assignments
from judged.studies.pages import Study, make_study_app
from judged.studies.records import StudyLists
from judged.studies.storage import StudyStore

PAGE = Path(__file__).resolve().parents[1] / "docs" / "simulated-study.md"
PEOPLE = 12
TEXT = """\
# Case study: a simulated user study

**Question**: does a user study recover simulated differences? **Data**: two rankers of the sample and
{people} simulated participants in two groups. The results are not evidence about these rankers or about people.

**Method**: `tools/simulated_study.py` takes part through the forms of the study's pages. A simulated participant reads
down the list, opens fewer documents at lower ranks, and saves most relevant documents and a few others. Satisfaction
depends on the saved relevant documents and on the person; times are simulated too.

## Design

`judged study init study.toml` writes a design that runs on the sample.

```text
$ judged study check study.toml
{check}
```

## Run the study

```sh
judged study links study.toml --store study.db
judged study run study.toml --store study.db
judged study export study.db -o recorded
```

## Report

```text
$ judged study report recorded --design study.toml --outcome satisfaction
{report}
```

**Conclusion**: with six topics, the difference in satisfaction, the primary outcome, is undecided. The interval for
other participants and topics is the wider one. Within participants, nDCG@10 correlates with satisfaction, as
simulated. [User studies](user-studies.md) describes each step.

## Term weights

With `judged study init weights.toml --term-weights`, 12 novices and 12 experts do half of the tasks with weights of
terms. The simulated participants set weights at random, which takes 10 seconds, and read faster with each task. The
report shows, among others:

```text
$ judged study report recorded --design weights.toml --outcome minutes -v
{weights}
```

**Conclusion**: the interval for the difference in minutes contains the simulated 10 seconds. All other rows are
exploratory, and p-values of learning are not corrected.
"""


class Participant:
    """Simulated participant, who reads results, saves documents, and answers questions."""

    def __init__(
        self, study: Study, name: str, grades: dict[str, dict[str, float]], clock: list[int], seed: int
    ) -> None:
        app = make_study_app(study, Rules(LOOPBACK))
        # `take_part` requests the page that follows an answer
        self.client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
        self.study, self.home, self.grades, self.clock = study, f"/s/{study.store.token(name)}", grades, clock
        self.rng = np.random.default_rng(seed)
        self.tasks = 0
        self.level, self.pleased = float(self.rng.normal(0, 0.6)), 0.0

    def take_part(self) -> None:
        """Complete all pages of the study."""
        while (step := self.client.get(self.home).headers["location"].rpartition("/")[2]) != "thanks":
            self.clock[0] += 15_000
            if step.startswith("search"):
                self.search(step)
            self.client.post(f"{self.home}/{step}", data=self.answers(self.client.get(f"{self.home}/{step}").text))

    def search(self, step: str) -> None:
        """Examine the first page of results, and save documents."""
        text = self.client.get(f"{self.home}/{step}").text
        topic = next(
            task.topic for task in (*self.study.design.tasks, *self.study.design.practice) if f">{task.query}<" in text
        )
        if 'id="q"' in text:  # participants write queries, and may weight their terms
            query: dict[str, Any] = {"q": self.study.design.task(topic).query}
            text = self.client.get(f"{self.home}/{step}", params=query).text
            if count := text.count('name="w"'):
                query["w"] = self.rng.choice([0.5, 1.0, 2.0], count).tolist()
                text = self.client.get(f"{self.home}/{step}", params=query).text
                self.clock[0] += 10_000
        page = int(re.findall(r"document\?page=(\d+)", text)[0])
        saved = relevant = 0
        for rank, document in enumerate(dict.fromkeys(re.findall(r"document\?page=\d+&amp;id=([^\"&]+)", text))):
            self.clock[0] += int(4_000 * 0.9**self.tasks)  # practice makes reading faster
            if self.rng.random() > 0.85**rank:
                continue
            good = self.grades.get(topic, {}).get(document, 0) > 0
            self.client.get(f"{self.home}/{step}/document", params={"page": page, "id": document})
            self.clock[0] += int(self.rng.integers(8_000, 25_000))
            form: dict[str, Any] = {"page": page, "id": document, "then": "results"}
            if self.rng.random() < (0.9 if good else 0.1):
                self.client.post(f"{self.home}/{step}/act", data={**form, "action": "save"})
                saved, relevant = saved + 1, relevant + good
            self.client.post(f"{self.home}/{step}/act", data={**form, "action": "back", "seconds": 10})
            if saved == self.study.design.task(topic).save:
                break
        self.tasks += 1
        self.pleased = relevant - 1 + self.level + float(self.rng.normal(0, 0.5))

    def answers(self, text: str) -> dict[str, str]:
        """Answer each question on a page, with higher values after a successful task."""
        form = dict(re.findall(r'<textarea id="[^"]+" name="([^"]+)"()', text))
        for name in dict.fromkeys(re.findall(r'type="radio" name="([^"]+)"', text)):
            values = re.findall(rf'type="radio" name="{name}" value="([^"]+)"', text)
            share = 1 / (1 + np.exp(-self.pleased))
            form[name] = values[min(int(share * len(values)), len(values) - 1)]
        return form


def page() -> str:
    """Build the page."""
    with tempfile.TemporaryDirectory() as folder:
        design_path = Path(folder) / "study.toml"
        design_path.write_text(
            re.sub(r"participants = 12", f"participants = {PEOPLE // 2}", first_design()), encoding="utf-8"
        )
        run(design_path, Path(folder))
        check = _run_command(folder, "study", "check", "study.toml")
        report = _run_command(
            folder, "study", "report", "recorded", "--design", "study.toml", "--outcome", "satisfaction"
        )
    with tempfile.TemporaryDirectory() as folder:
        design_path = Path(folder) / "weights.toml"
        design_path.write_text(first_design(term_weights=True), encoding="utf-8")
        run(design_path, Path(folder))
        arguments = ("recorded", "--design", "weights.toml", "--outcome", "minutes", "-v")
        weights = _run_command(folder, "study", "report", *arguments)
        return TEXT.format(people=PEOPLE, check=check, report=report, weights=_excerpt(weights))


_TABLES = ("Learning effects", "Differences between groups", "Search behavior by system")


def _excerpt(report: str) -> str:
    """Return the sentence of a report, and two outcomes of the tables about learning, groups, and strategies."""
    first, *sections = report.split("\n== ")
    texts = [first.strip()]
    for section in sections:
        title, _, table = section.partition(" ==\n")
        if title in _TABLES:
            parts = table.strip().split("\n\n")  # wide tables have several parts
            rows = [line for line in parts[0].splitlines() if re.match(r"(outcome|minutes|relevant saved) ", line)]
            texts.append(f"== {title} ==\n\n" + ("\n".join(rows) or "\n\n".join(parts[:2])))
    return "\n\n".join(texts)


def run(design_path: Path, folder: Path) -> None:
    """Run the study with all participants in sequence, and export the records."""
    design, clock = read_design(design_path), [1_767_225_600_000]
    store = StudyStore.open(str(folder / "study.db"), sha256(design_path.read_bytes()).hexdigest(), new=True)
    groups = [group.name for group in design.groups for _ in range(group.participants)]
    people = {f"p{index}": name for index, name in enumerate(groups, 1)}
    store.enroll(assignments(design, people).to_pylist())
    study = Study(design, store, StudyLists.of(design))
    grades: dict[str, dict[str, float]] = {}
    for row in Qrels.read(str(sample.FOLDER / "qrels.txt")).table.to_pylist():
        grades.setdefault(row["query_id"], {})[row["doc_id"]] = row["relevance"]
    with (
        patch("judged.studies.storage.now_ms", lambda: clock[0]),
        patch("judged.studies.pages.now_ms", lambda: clock[0]),
    ):
        for seed, name in enumerate(people):
            Participant(study, name, grades, clock, seed).take_part()
    store.close()
    _run_command(folder, "study", "export", "study.db", "-o", "recorded")


def _run_command(folder: str | Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "judged", *arguments]
    width = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, cwd=folder, env=width, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
