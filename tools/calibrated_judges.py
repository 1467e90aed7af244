"""Write docs/calibrated-judges.md, about five model judges of TREC Deep Learning 2019: ``calibrated_judges.py DATA``.

DATA is a folder with ``dl19_passage`` and in it ``qrels``, ``runs`` and ``alt_qrels/llm``. Random halves of the topics
are taken as judged by people, the others as judged by the models alone; what people said of those then tells how far
each kind of mean was off. The tests compare the page with what this makes where the data is at hand.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import judged
from judged.errors import JudgedWarning
from judged.labels import calibrate
from judged.results.escaping import TextTable
from judged.stats.prediction_powered import prediction_powered

PAGE = Path(__file__).resolve().parents[1] / "docs" / "calibrated-judges.md"
QRELS = "dl19_passage/qrels/qrels.dl19-passage.txt"
MEASURE, LABELED, SPLITS = "nDCG@10", 25, 100
MODELS = {
    "GPT-4 (UMBRELA, graded)": "umbrella_gpt-4_zeroshot_dl19",
    "GPT-4 (binary)": "binary_gpt4_dl19",
    "GPT-4o (binary)": "binary_gpt4o_dl19",
    "Llama 3.2 (binary)": "binary_llama3.2_dl19",
    "EXAM (mean of self-rated grades)": "qrels.mean.exam_selfrate_graded_dl19",
}
SHOWN = "GPT-4 (UMBRELA, graded)"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Make the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        runs = sorted((data / "dl19_passage" / "runs").glob("*.gz"))
        people = judged.Qrels.read(data / QRELS)
        folder = data / "dl19_passage" / "alt_qrels" / "llm"
        models = {name: judged.Qrels.read(folder / f"{stem}.txt.gz") for name, stem in MODELS.items()}
        topics = np.random.default_rng(0).permutation(len(people.topics))[:LABELED]
        labeled = [people.topics[at] for at in sorted(topics)]
        parts = [HEAD, judges(people, models, runs, labeled), means(people, models[SHOWN], runs, labeled)]
        parts.append(errors(people, models, runs))
    return "\n\n".join([*parts, TAIL]) + "\n"


def judges(people: judged.Qrels, models: dict[str, judged.Qrels], runs: list[Path], labeled: list[str]) -> str:
    """Say how each judge grades, orders systems, and what it is worth."""
    found = calibrate(people, models, runs, MEASURE, labeled=labeled)
    rows: list[tuple[str, ...]] = []
    for one in found.judges:
        low, high = one.worth_ci or (0.0, 0.0)
        worth = f"{one.worth:.1f} [{low:.1f}, {high:.1f}]" + ("" if low > 0 else " (not shown)")
        kappa = "" if np.isnan(one.kappa) else f"{one.kappa:.3f}"
        agreed = (f"{one.same:.0%}", kappa, f"{one.quadratic:.3f}", f"{one.shift:+.2f}")
        systems = (f"{one.tau:.3f}", f"{one.within_topics:.3f}", f"{one.largest_error:.3f}")
        rows.append((one.judge, str(one.absent), str(one.invalid), *agreed, *systems, worth))
    head = ("judge", "absent", "invalid", "same grade", "kappa", "quadratic", "shift")
    head += ("tau of systems", "within topics", "largest error", "worth, topics")
    said = (
        f"`calibrate` with {len(runs)} runs: people's labels on {len(labeled)} of the 43 topics, chosen at random"
        " (seed 0), the models' on all. *Worth* is how many more topics judged by people would narrow an interval as"
        " much, in the median over the runs, with a bootstrap interval; where that holds 0 it is not shown that the"
        " judge is worth any. EXAM's grades go up to 5: those above 3 are on no scale here, and left out."
    )
    return f"## Five judges\n\n{said}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def means(people: judged.Qrels, model: judged.Qrels, runs: list[Path], labeled: list[str]) -> str:
    """Set a mean by people, by a model and by both beside that of all topics."""
    found = calibrate(people, {SHOWN: model}, runs, MEASURE, labeled=labeled)
    every = judged.evaluate(people, runs, MEASURE).aggregate()
    rows: list[tuple[str, ...]] = []
    for one in sorted(found.means, key=lambda one: -every[one.run][MEASURE]):
        known, corrected = (
            f"{mean:.3f} [{low:.3f}, {high:.3f}]"
            for mean, (low, high) in ((one.known, one.known_ci), (one.value, one.ci))
        )
        exact = f"{every[one.run][MEASURE]:.3f}"
        rows.append((one.run, exact, known, f"{one.model:.3f}", corrected, f"{one.weight:.2f}"))
    head = ("run", "people, 43 topics", f"people, {len(labeled)} topics", "model, 43 topics", "corrected", "weight")
    said = (
        f"{MEASURE} with {SHOWN} as the judge, and 95 % intervals for the mean over the population of topics. The"
        " corrected mean uses people's labels of 25 topics and the model's of all."
    )
    return f"## Means of systems\n\n{said}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def errors(people: judged.Qrels, models: dict[str, judged.Qrels], runs: list[Path]) -> str:
    """Measure how far each kind of mean is from that of all topics, over random choices of the labeled ones."""
    whole = judged.evaluate(people, runs, MEASURE)
    y, names = whole.values[:, 0], whole.query_ids
    true, chance, rows = y.mean(axis=1), np.random.default_rng(1), list[tuple[str, ...]]()
    splits = [chance.permutation(len(names)) for _ in range(SPLITS)]
    for judge, qrels in models.items():
        scores = judged.evaluate(qrels, runs, MEASURE)
        place = {name: at for at, name in enumerate(scores.query_ids)}
        f = scores.values[:, 0][:, [place[name] for name in names]]
        off = {"people": list[float](), "corrected": list[float]()}
        widths: list[float] = []
        for split in splits:
            known, rest = split[:LABELED], split[LABELED:]
            for run in range(len(runs)):
                found = prediction_powered(y[run, known], f[run, known], f[run, rest], resamples=100)
                off["people"].append(abs(found.known - true[run]))
                off["corrected"].append(abs(found.value - true[run]))
                width, alone = (high - low for low, high in (found.interval, found.known_interval))
                widths.append(width / alone)
        model = np.abs(f.mean(axis=1) - true).mean()
        far = (float(np.mean(off["people"])), float(model), float(np.mean(off["corrected"])))
        rows.append((judge, *(f"{value:.4f}" for value in far), f"{np.mean(widths):.2f}"))
    head = ("judge", "people alone", "model alone", "corrected", "width of the interval, times that of people alone")
    said = (
        f"Mean distance from people's mean over all 43 topics, over {len(runs)} runs and {SPLITS} random choices of"
        f" {LABELED} labeled topics."
    )

    return f"## How far off\n\n{said}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


HEAD = """# Five model judges, calibrated

Generated by `tools/calibrated_judges.py` from the official passage runs and judgments of TREC Deep Learning 2019, and
the labels that five language models gave the same passages. It shows what `judged labels calibrate` says of them,
and what its corrected means are worth ([how models are asked](model-judges.md))."""

TAIL = """## What the correction is

A mean over topics is corrected by prediction-powered inference with a tuned weight (Angelopoulos et al. 2023): the
model's mean on the topics without people's labels, weighed, plus the mean of people's scores less the weighed model's
on the topics with them. With a weight that is given that is unbiased whatever the model is like, if the labeled topics
were chosen at random and people judged them fully. The weight here, between 0 and 1, is the one that makes the variance
least, estimated of the same topics: it is near 0 for a model that does not predict people's scores, and it brings a
bias that shrinks as 1/n. Intervals of means use the bounds of the measure, as other intervals of means do, which allows
for topics on which the model fails and of which none is labeled. The plain form, with weight 1, is never used.

In 4,000 simulated samples each of good judges that collapse on 3 to 20 % of the topics, the intervals of means from 25
labeled topics cover in 95 to 99 %; of scores that are 0 on nine of ten topics they cover in 95 to 100 %.
Intervals of differences from the first system have no such bounds: with fewer than 25 labeled topics they do not hold
their level, and a note says so.

## What may not be concluded

- What a judge is worth depends on the measure, the systems and the collection: calibrate it again for each.
- A judge may be right about systems in the mean and wrong about topics: look at *within topics* before any of its
  labels are read one by one.
- 25 topics say little about a family of systems that a judge may favor; `--family` shows an interval.
- Models may have seen these labels in training: DL19's are public. On labels of your own they may do worse.
"""

if __name__ == "__main__":
    sys.exit(main())
