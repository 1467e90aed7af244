"""Write the table of docs/pooling-methods.md on decisive labels: ``deciding.py DATA [--pairs N]``.

DATA is a folder of TREC DL 2019 passages, with qrels and runs. All labels are hidden, and revealed individually on
request, until the labels decide which of two runs has the higher mean. Passages that NIST did not judge have grade 0.
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

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pooling-methods.md"
_TABLE_MARKERS = re.compile(
    r"(<!-- written by tools/deciding.py: begin -->\n).*?(<!-- written by tools/deciding.py: end -->)", re.DOTALL
)
MEASURES = ("nDCG@10", "P(rel=2)@10")
ORDERS = ("by priority", "by rank", "random")


def main(data: Path, pairs: int) -> None:
    """Compute the shares of labels for each order, and write the table."""
    qrels, runs = Qrels.read(data / "qrels" / "qrels.dl19-passage.txt"), sorted((data / "runs").glob("*.run.gz"))
    all_pairs = list(itertools.combinations(runs, 2))
    selected_pairs = [all_pairs[i] for i in np.sort(np.random.default_rng(0).permutation(len(all_pairs))[:pairs])]
    lines = [
        "| measure | pairs | order | labels to decide, median | quartiles | fewer labels than other orders |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for measure in MEASURES:
        shares_by_pair = [
            decision_shares(build_comparison(qrels, *pair, measure), i) for i, pair in enumerate(selected_pairs)
        ]
        shares = np.array([row for row in shares_by_pair if row is not None])
        best_share = (shares[:, 0] < shares[:, 1:].min(axis=1)).mean()
        for i, order in enumerate(ORDERS):
            low, median, high = np.percentile(shares[:, i], (25, 50, 75))
            name, count, best_text = (f"`{measure}`", str(len(shares)), f"{best_share:.0%}") if i == 0 else ("", "", "")
            lines.append(f"| {name} | {count} | {order} | {median:.1%} | {low:.0%} to {high:.0%} | {best_text} |")
    text = "\n".join(lines) + "\n"
    print(text)
    page = PAGE.read_text()
    PAGE.write_text(_TABLE_MARKERS.sub(lambda match: match[1] + "\n" + text + "\n" + match[2], page))


def decision_shares(comparison: OpenComparison, seed: int) -> list[float] | None:
    """Return the share of labels after which each order decides; None if all labels do not decide."""
    is_returned = (comparison.ranks > 0).any(axis=0)
    truth = np.where(is_returned, np.maximum(comparison.level, 0), -1)
    comparison.outside_counts[:] = 0  # labels outside both runs are hidden too
    topic, doc = np.nonzero(is_returned)
    if winner(comparison.bounds(np.arange(len(truth)), truth)) is None:
        return None
    best_rank = np.where(comparison.ranks > 0, comparison.ranks, 99).min(axis=0)[topic, doc]
    rng = np.random.default_rng(seed)
    orders = [np.lexsort((rng.random(len(topic)), best_rank)), rng.permutation(len(topic))]
    counts = [
        count_requested(comparison, truth),
        *(labels_needed(comparison, topic[order], doc[order], truth) or 0 for order in orders),
    ]
    return [count / len(topic) for count in counts]


def count_requested(comparison: OpenComparison, truth: Ints) -> int:
    """Reveal the labels by priority, and count them until the decision."""
    all_topics, level = np.arange(len(truth)), np.full_like(truth, -1)
    bounds, steps = comparison.bounds(all_topics, level), comparison.label_effects(all_topics, level)
    while winner(bounds) is None:
        is_open = (truth >= 0) & (level < 0)
        cell: Any = np.unravel_index(np.argmax(np.where(is_open, comparison.priority(level, steps), -1.0)), level.shape)
        level[cell] = truth[cell]
        topic = cell[:1]
        topic = np.array(topic)
        bounds[:, topic] = comparison.bounds(topic, level[topic])
        steps[:, topic] = comparison.label_effects(topic, level[topic])
    return int(((level >= 0) & (truth >= 0)).sum())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=30)
    main(**vars(parser.parse_args()))
