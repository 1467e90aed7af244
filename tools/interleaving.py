"""Print the tables of docs/interleaving.md: error rates on simulated logs, and users beside those of an A/B test.

``python tools/interleaving.py [--groups N] [--users N]``; as committed, some ten minutes on one core.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from judged.online import abtest, interleaving, plan_interleaving
from judged.online.ab_tests.differences import Inference
from judged.online.interleaving_analysis.credit import read_mixed_lists, read_outcomes
from judged.online.mixed_lists import METHODS
from judged.online.simulation import Arm, Collection, Interleaving, SimulationPlan, Users, simulate
from judged.stats.ratio import UnitRatio

METRICS = ("SatisfiedPageCTR", "SessionSuccess", "Conversion")
GROUP, BLIND = 300, "position only"
SITUATIONS = {
    BLIND: (4.0, 0.0, (0.4,) * 4),
    "as good": (1.2, 1.2, Collection().attractiveness),
    "better": (1.2, 0.6, Collection().attractiveness),
}


def arms(first: float, second: float) -> tuple[Arm, Arm]:
    """Make two rankers of so much noise."""
    return Arm("old", "old", first, 0.5), Arm("new", "new", second, 0.5)


def error_rates(groups: int) -> None:
    """Cut a log into groups of 300 users who clicked, and count how often the intervals of one hold the truth."""
    print("\n| situation | method | truth | one day | any day | mean |\n| :-- | :-- | --: | --: | --: | --: |")
    once, always = Inference(any_day=False), Inference(expected=GROUP)
    for situation, (first, second, attractiveness) in SITUATIONS.items():
        collection = Collection(short=0.25, attractiveness=attractiveness)
        for method in METHODS:
            plan = SimulationPlan(
                collection=collection,
                arms=arms(first, second),
                users=Users(number=round(1.05 * GROUP * groups)),
                interleaving=Interleaving(method, "longer"),
            )
            log = simulate(plan, seed=3).log()
            made = read_outcomes(
                log, read_mixed_lists(log, None, "user", None, count_shared=False), count_repeated=False
            )
            outcome = (made.win - made.loss) / 2.0
            truth = 0.0 if situation == BLIND else UnitRatio.of_rows(made.unit, outcome).value
            values: list[float] = []
            ts: list[float] = []
            for group in range(groups):
                here = made.unit // GROUP == group
                ratio = UnitRatio.of_rows(made.unit[here], outcome[here])
                values.append(ratio.value)
                ts.append(abs(ratio.t(truth)))
            rates = " | ".join(f"{sum(t < looks.critical(GROUP) for t in ts) / groups:.1%}" for looks in (once, always))
            told = f"{100 * truth:+.2f} pp | {rates} | {100 * sum(values) / groups:+.2f} pp"
            print(f"| {situation} | {method} | {told} |", flush=True)


def sensitivity(users: int) -> None:
    """Say how many users it takes to tell two rankers apart, mixed and in an A/B test."""
    head = " | ".join(f"A/B, {name}" for name in METRICS)
    print(f"\n| noise of grades | method | preference | users | {head} |\n| :-- | :-- | --: | --: | --: | --: | --: |")
    for second in (0.7, 0.6, 0.4):
        plan = SimulationPlan(arms=arms(0.8, second), users=Users(number=users))
        parted = simulate(replace(plan, users=Users(number=10 * users)), seed=1).log()
        tests = [abtest(parted, name, metrics=(), baseline="old") for name in METRICS]
        for method in METHODS:
            log = simulate(replace(plan, interleaving=Interleaving(method)), seed=2).log()
            found = interleaving(log)
            pairs = plan_interleaving(log, past=[(found, test) for test in tests]).pairs
            needed = " | ".join(f"{one.users_abtest:,.0f} ({one.gain:+.1%})" for one in pairs)
            value = f"{100 * found.overall.value:+.1f} pp"
            print(f"| 0.8, {second} | {method} | {value} | {pairs[0].users_interleaving:,.0f} | {needed} |", flush=True)


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--users", type=int, default=4000)
    asked = parser.parse_args()
    sensitivity(asked.users)
    error_rates(asked.groups)


if __name__ == "__main__":
    main()
