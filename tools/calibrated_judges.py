"""Write docs/calibrated-judges.md, on five model judges of TREC DL 2019: ``calibrated_judges.py DATA``.

DATA is a folder with ``dl19_passage`` and in it ``qrels``, ``runs``, and ``alt_qrels/llm``. In each split, a random
part of the topics counts as labeled by people, and the rest as labeled by models only. The people's labels of all
topics show the error of each kind of mean. If the data is available, the tests compare the page with the output.
"""

from __future__ import annotations

import sys
import textwrap
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
MODEL = "GPT-4 (UMBRELA, graded)"


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
        parts = [HEAD, judges(people, models, runs, labeled), means(people, models[MODEL], runs, labeled)]
        parts.append(errors(people, models, runs))
    return "\n\n".join([*parts, TAIL]) + "\n"


def judges(people: judged.Qrels, models: dict[str, judged.Qrels], runs: list[Path], labeled: list[str]) -> str:
    """Compare grades and system orders of each judge, and the value of its labels."""
    calibration = calibrate(people, models, runs, MEASURE, labeled=labeled)
    rows: list[tuple[str, ...]] = []
    for judge_row in calibration.judges:
        low, high = judge_row.added_topics_ci or (0.0, 0.0)
        value_text = f"{judge_row.added_topics:.1f} [{low:.1f}, {high:.1f}]" + ("" if low > 0 else " (n.s.)")
        kappa = "" if np.isnan(judge_row.kappa) else f"{judge_row.kappa:.3f}"
        agreement_cells = (f"{judge_row.same:.0%}", kappa, f"{judge_row.quadratic:.3f}", f"{judge_row.shift:+.2f}")
        systems = (f"{judge_row.tau:.3f}", f"{judge_row.within_topics:.3f}", f"{judge_row.largest_error:.3f}")
        rows.append(
            (judge_row.judge, str(judge_row.missing), str(judge_row.invalid), *agreement_cells, *systems, value_text)
        )
    head = ("judge", "missing", "invalid", "same grade", "kappa", "quadratic kappa", "shift")
    head += ("tau", "within topics", "largest error", "value, topics")
    introduction = (
        f"`calibrate` with {len(runs)} runs and seed 0. *Tau* compares the order of the runs. *Within topics* is the"
        " correlation of the runs' scores, centered by topic. *Largest error* is that of a run's mean. *Value* is the"
        " number of additional topics judged by people that would narrow an interval equally: median over the runs,"
        " with a bootstrap interval."
        " If the interval includes 0, the value is not significant. EXAM has grades up to 5; those above 3 are omitted."
    )
    return (
        f"## Agreement with people\n\n{wrapped(introduction)}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()
    )


def means(people: judged.Qrels, model: judged.Qrels, runs: list[Path], labeled: list[str]) -> str:
    """Compare means by people, by a model, and by both with the means over all topics."""
    calibration = calibrate(people, {MODEL: model}, runs, MEASURE, labeled=labeled)
    exact_means = judged.evaluate(people, runs, MEASURE).aggregate()
    rows: list[tuple[str, ...]] = []
    for mean_row in sorted(calibration.means, key=lambda mean_row: -exact_means[mean_row.run][MEASURE])[::4]:
        people_text, corrected_text = (
            f"{mean:.3f} [{low:.3f}, {high:.3f}]"
            for mean, (low, high) in ((mean_row.human, mean_row.human_ci), (mean_row.value, mean_row.ci))
        )
        exact = f"{exact_means[mean_row.run][MEASURE]:.3f}"
        rows.append(
            (mean_row.run, exact, people_text, f"{mean_row.model:.3f}", corrected_text, f"{mean_row.weight:.2f}")
        )
    head = ("run", "people, 43 topics", f"people, {len(labeled)} topics", "model, 43 topics", "corrected", "weight")
    introduction = (
        f"{MEASURE} of every fourth run, with {MODEL} as the judge, and 95% intervals for the population of topics."
    )
    return f"## Means of systems\n\n{wrapped(introduction)}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def errors(people: judged.Qrels, models: dict[str, judged.Qrels], runs: list[Path]) -> str:
    """Report the error of each kind of mean, over random choices of labeled topics."""
    people_scores = judged.evaluate(people, runs, MEASURE)
    y, names = people_scores.values[:, 0], people_scores.query_ids
    true_means, rng, rows = y.mean(axis=1), np.random.default_rng(1), list[tuple[str, ...]]()
    splits = [rng.permutation(len(names)) for _ in range(SPLITS)]
    for judge, qrels in models.items():
        scores = judged.evaluate(qrels, runs, MEASURE)
        row_of_topic = {name: i for i, name in enumerate(scores.query_ids)}
        model_scores = scores.values[:, 0][:, [row_of_topic[name] for name in names]]
        errors = {"people": list[float](), "corrected": list[float]()}
        widths: list[float] = []
        for split in splits:
            labeled_rows, other_rows = split[:LABELED], split[LABELED:]
            for run in range(len(runs)):
                estimate = prediction_powered(
                    y[run, labeled_rows], model_scores[run, labeled_rows], model_scores[run, other_rows], resamples=100
                )
                errors["people"].append(abs(estimate.known_mean - true_means[run]))
                errors["corrected"].append(abs(estimate.value - true_means[run]))
                width, people_width = (high - low for low, high in (estimate.interval, estimate.known_interval))
                widths.append(width / people_width)
        model = np.abs(model_scores.mean(axis=1) - true_means).mean()
        mean_errors = (float(np.mean(errors["people"])), float(model), float(np.mean(errors["corrected"])))
        rows.append((judge, *(f"{value:.4f}" for value in mean_errors), f"{np.mean(widths):.2f}"))
    head = ("judge", "people only", "model only", "corrected", "relative width of the interval")
    introduction = (
        f"Mean absolute error, over {len(runs)} runs and {SPLITS} random choices of {LABELED} labeled topics. The width"
        " is that of the corrected interval relative to the interval from people's labels only."
    )

    return f"## Errors of the means\n\n{wrapped(introduction)}\n\n" + TextTable(head, tuple(rows), labels=1).markdown()


def wrapped(text: str) -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 120, break_on_hyphens=False)


HEAD = """# Case study: five language models as judges

Generated by `tools/calibrated_judges.py`.

**Question.** Can labels of language models replace those of people, and are corrected means more accurate?

**Data.** The official passage runs and judgments of TREC Deep Learning 2019, and published labels of five language
models for the same passages.

**Method.** `judged labels calibrate` compares the models with people's labels of 25 of the 43 topics, chosen at random.
The corrected means use people's labels of these topics and the model's labels of all topics. The true values are the
means over people's labels of all 43 topics. How to ask a model: [use a language model as a judge](model-judges.md)."""

TAIL = """## Conclusion

- The judge with the highest agreement (UMBRELA with GPT-4) gives the same grade as people for 55% of the pairs. Its
  means have an error of 0.087, compared with 0.024 for means over 25 topics judged by people.
- Corrected means are closer to the true values than means over people's labels only, for all five judges.
- The gain is small. Intervals are 1% to 8% narrower, and only for one judge is the value of its labels significantly
  above 0.

## Correction

The correction is prediction-powered inference with a tuned weight (Angelopoulos et al. 2023). The estimate is the sum
of two parts: the weighted mean of the model on topics without people's labels, and the mean difference between people
and the weighted model on the other topics. With a fixed weight, it is unbiased for any model, if the labeled topics are
a random sample and people judged them completely.

The weight, between 0 and 1, minimizes the variance. It is estimated from the same topics, which adds a bias that
decreases as 1/n. It is near 0 for a model that does not predict people's scores. The intervals use the bounds of the
measure, so they allow for topics on which the model fails and that people did not judge.

In simulations (4,000 samples each), good judges failed on 3% to 20% of the topics. Intervals from 25 labeled topics
covered the true mean in 95% to 99% of the samples. With scores of 0 on nine of ten topics, coverage was 95% to 100%.
Intervals of differences from the first system have no such bounds. With fewer than 25 labeled topics, their coverage is
too low, and a note says so.

## Limits

- The value of a judge depends on the measure, the systems, and the collection. Calibrate it again for each.
- A judge can order systems well and topics badly. Check *within topics* before you use single labels.
- 25 topics show little about a family of systems that a judge may favor; `--family` gives an interval.
- The models may have seen these labels in training, since DL19 is public. They may do worse on your own labels.
"""

if __name__ == "__main__":
    sys.exit(main())
