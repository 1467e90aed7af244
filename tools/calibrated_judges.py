"""Write docs/calibrated-judges.md, about five model judges of TREC Deep Learning 2019: ``calibrated_judges.py DATA``.

DATA is a folder with ``dl19_passage`` and in it ``qrels``, ``runs``, and ``alt_qrels/llm``. Random halves of the topics
are used as judged by people, the others as judged by models only; the people's labels of the others show the error of
each kind of mean. If the data is available, the tests compare the page with the output.
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
    """Build the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        runs = sorted((data / "dl19_passage" / "runs").glob("*.gz"))
        people = judged.Qrels.read(data / QRELS)
        folder = data / "dl19_passage" / "alt_qrels" / "llm"
        models = {name: judged.Qrels.read(folder / f"{stem}.txt.gz") for name, stem in MODELS.items()}
        topics = np.random.default_rng(0).permutation(len(people.topics))[:LABELED]
        labeled = [people.topics[topic_index] for topic_index in sorted(topics)]
        parts = [HEAD, judges(people, models, runs, labeled), means(people, models[SHOWN], runs, labeled)]
        parts.append(errors(people, models, runs))
    return "\n\n".join([*parts, TAIL]) + "\n"


def judges(people: judged.Qrels, models: dict[str, judged.Qrels], runs: list[Path], labeled: list[str]) -> str:
    """Compare grades and system orders of each judge, and the value of its labels."""
    calibration = calibrate(people, models, runs, MEASURE, labeled=labeled)
    rows: list[tuple[str, ...]] = []
    for judge_row in calibration.judges:
        low, high = judge_row.worth_ci or (0.0, 0.0)
        worth = f"{judge_row.worth:.1f} [{low:.1f}, {high:.1f}]" + ("" if low > 0 else " (not shown)")
        kappa = "" if np.isnan(judge_row.kappa) else f"{judge_row.kappa:.3f}"
        agreement_cells = (f"{judge_row.same:.0%}", kappa, f"{judge_row.quadratic:.3f}", f"{judge_row.shift:+.2f}")
        systems = (f"{judge_row.tau:.3f}", f"{judge_row.within_topics:.3f}", f"{judge_row.largest_error:.3f}")
        rows.append((judge_row.judge, str(judge_row.absent), str(judge_row.invalid), *agreement_cells, *systems, worth))
    head = ("judge", "absent", "invalid", "same grade", "kappa", "quadratic", "shift")
    head += ("tau of systems", "within topics", "largest error", "worth, topics")
    introduction = (
        f"`calibrate` with {len(runs)} runs: people's labels on {len(labeled)} of the 43 topics, chosen at random"
        " (seed 0), the models' on all. *Worth* is how many more topics judged by people would narrow an interval as"
        " much, in the median over the runs, with a bootstrap interval; where that holds 0 it is not shown that the"
        " judge is worth any. EXAM's grades go up to 5: those above 3 are on no scale here, and left out."
    )
    return f"## Five judges\n\n{introduction}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def means(people: judged.Qrels, model: judged.Qrels, runs: list[Path], labeled: list[str]) -> str:
    """Compare means by people, by a model, and by both with the means over all topics."""
    calibration = calibrate(people, {SHOWN: model}, runs, MEASURE, labeled=labeled)
    exact_means = judged.evaluate(people, runs, MEASURE).aggregate()
    rows: list[tuple[str, ...]] = []
    for mean_row in sorted(calibration.means, key=lambda mean_row: -exact_means[mean_row.run][MEASURE]):
        people_text, corrected_text = (
            f"{mean:.3f} [{low:.3f}, {high:.3f}]"
            for mean, (low, high) in ((mean_row.known, mean_row.known_ci), (mean_row.value, mean_row.ci))
        )
        exact = f"{exact_means[mean_row.run][MEASURE]:.3f}"
        rows.append(
            (mean_row.run, exact, people_text, f"{mean_row.model:.3f}", corrected_text, f"{mean_row.weight:.2f}")
        )
    head = ("run", "people, 43 topics", f"people, {len(labeled)} topics", "model, 43 topics", "corrected", "weight")
    introduction = (
        f"{MEASURE} with {SHOWN} as the judge, and 95 % intervals for the mean over the population of topics. The"
        " corrected mean uses people's labels of 25 topics and the model's of all."
    )
    return f"## Means of systems\n\n{introduction}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def errors(people: judged.Qrels, models: dict[str, judged.Qrels], runs: list[Path]) -> str:
    """Measure the error of each kind of mean, over random choices of labeled topics."""
    people_scores = judged.evaluate(people, runs, MEASURE)
    y, names = people_scores.values[:, 0], people_scores.query_ids
    true_means, rng, rows = y.mean(axis=1), np.random.default_rng(1), list[tuple[str, ...]]()
    splits = [rng.permutation(len(names)) for _ in range(SPLITS)]
    for judge, qrels in models.items():
        scores = judged.evaluate(qrels, runs, MEASURE)
        row_of_topic = {name: i for i, name in enumerate(scores.query_ids)}
        f = scores.values[:, 0][:, [row_of_topic[name] for name in names]]
        errors = {"people": list[float](), "corrected": list[float]()}
        widths: list[float] = []
        for split in splits:
            labeled_rows, other_rows = split[:LABELED], split[LABELED:]
            for run in range(len(runs)):
                estimate = prediction_powered(
                    y[run, labeled_rows], f[run, labeled_rows], f[run, other_rows], resamples=100
                )
                errors["people"].append(abs(estimate.known_mean - true_means[run]))
                errors["corrected"].append(abs(estimate.value - true_means[run]))
                width, people_width = (high - low for low, high in (estimate.interval, estimate.known_interval))
                widths.append(width / people_width)
        model = np.abs(f.mean(axis=1) - true_means).mean()
        mean_errors = (float(np.mean(errors["people"])), float(model), float(np.mean(errors["corrected"])))
        rows.append((judge, *(f"{value:.4f}" for value in mean_errors), f"{np.mean(widths):.2f}"))
    head = ("judge", "people alone", "model alone", "corrected", "width of the interval, times that of people alone")
    introduction = (
        f"Mean distance from people's mean over all 43 topics, over {len(runs)} runs and {SPLITS} random choices of"
        f" {LABELED} labeled topics."
    )

    return f"## How far off\n\n{introduction}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


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
