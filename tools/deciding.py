"""Write the table of docs/collections.md on labels that decide: ``deciding.py DATA [--pairs N]``.

DATA is a folder of TREC DL 2019 passages, with qrels and runs. All labels are hidden, and revealed one by one as they
are asked for, until it is decided which of two runs has the higher mean; what NIST did not judge has grade 0.
"""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.labels.deciding import OpenComparison, build_comparison, labels_needed, winner

if TYPE_CHECKING:
    from judged.results.types import Ints

PAGE = Path(__file__).resolve().parents[1] / "docs" / "collections.md"
_PLACE = re.compile(
    r"(<!-- written by tools/deciding.py: begin -->\n).*?(<!-- written by tools/deciding.py: end -->)", re.DOTALL
)
MEASURES = ("nDCG@10", "P(rel=2)@10")
ORDERS = ("those asked for", "by rank", "random")


def main(data: Path, pairs: int) -> None:
    """Measure, and write the table."""
    qrels, runs = Qrels.read(data / "qrels" / "qrels.dl19-passage.txt"), sorted((data / "runs").glob("*.run.gz"))
    every = list(itertools.combinations(runs, 2))
    chosen = [every[at] for at in np.sort(np.random.default_rng(0).permutation(len(every))[:pairs])]
    lines = [
        "| measure | pairs | order | decided after, median | quartiles | fewer than both others |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for measure in MEASURES:
        found = [of_pair(build_comparison(qrels, *pair, measure), at) for at, pair in enumerate(chosen)]
        shares = np.array([row for row in found if row is not None])
        least = (shares[:, 0] < shares[:, 1:].min(axis=1)).mean()
        for at, order in enumerate(ORDERS):
            low, middle, high = np.percentile(shares[:, at], (25, 50, 75))
            name, count, fewer = (f"`{measure}`", str(len(shares)), f"{least:.0%}") if at == 0 else ("", "", "")
            lines.append(f"| {name} | {count} | {order} | {middle:.1%} | {low:.0%} to {high:.0%} | {fewer} |")
    text = "\n".join(lines) + "\n"
    print(text)
    page = PAGE.read_text()
    PAGE.write_text(_PLACE.sub(lambda match: match[1] + "\n" + text + "\n" + match[2], page))


def of_pair(made: OpenComparison, seed: int) -> list[float] | None:
    """Give the share of labels after which each order decides; None where all of them do not."""
    listed = (made.ranks > 0).any(axis=0)
    truth = np.where(listed, np.maximum(made.level, 0), -1)
    made.outside_counts[:] = 0  # labels outside both are hidden too
    at, doc = np.nonzero(listed)
    if winner(made.bounds(np.arange(len(truth)), truth)) is None:
        return None
    best = np.where(made.ranks > 0, made.ranks, 99).min(axis=0)[at, doc]
    random = np.random.default_rng(seed)
    orders = [np.lexsort((random.random(len(at)), best)), random.permutation(len(at))]
    counts = [asked_for(made, truth), *(labels_needed(made, at[order], doc[order], truth) or 0 for order in orders)]
    return [count / len(at) for count in counts]


def asked_for(made: OpenComparison, truth: Ints) -> int:
    """Reveal the label of highest priority, one after the other, and count them."""
    every, level = np.arange(len(truth)), np.full_like(truth, -1)
    ends, moved = made.bounds(every, level), made.label_effects(every, level)
    while winner(ends) is None:
        is_open = (truth >= 0) & (level < 0)
        place: Any = np.unravel_index(np.argmax(np.where(is_open, made.priority(level, moved), -1.0)), level.shape)
        level[place] = truth[place]
        topic = place[:1]
        topic = np.array(topic)
        ends[:, topic] = made.bounds(topic, level[topic])
        moved[:, topic] = made.label_effects(topic, level[topic])
    return int(((level >= 0) & (truth >= 0)).sum())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=30)
    main(**vars(parser.parse_args()))
