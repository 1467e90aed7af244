"""Print the numbers of docs/interleaving.md: sample sizes, also of A/B tests, and coverage on simulated logs.

``python tools/interleaving.py [--groups N] [--users N]``; as committed, some ten minutes on one core.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from judged.online import abtest, interleaving, plan_interleaving
from judged.online.ab_tests.differences import Inference
from judged.online.interleaving_analysis.credit import read_mixed_lists, read_outcomes
from judged.online.mixed_lists import METHODS
from judged.online.simulation import (
    SimulatedArm,
    SimulatedCollection,
    SimulatedInterleaving,
    SimulationPlan,
    Users,
    simulate,
)
from judged.stats.ratio import UnitRatio

METRIC = "SatisfiedPageCTR"
GROUP, BLIND = 300, "position only"
SITUATIONS = {
    BLIND: (4.0, 0.0, (0.4,) * 4),
    "as good": (1.2, 1.2, SimulatedCollection().attractiveness),
    "better": (1.2, 0.6, SimulatedCollection().attractiveness),
}


def arms(first: float, second: float) -> tuple[SimulatedArm, SimulatedArm]:
    """Return two rankers with these noise levels."""
    return SimulatedArm("old", "old", first, 0.5), SimulatedArm("new", "new", second, 0.5)


def error_rates(groups: int) -> None:
    """Report the coverage of intervals over groups of 300 users with clicks."""
    print("\n| situation | method | truth | one day | any day | mean |\n| :-- | :-- | --: | --: | --: | --: |")
    once, always = Inference(any_day=False), Inference(expected=GROUP)
    for situation, (first, second, attractiveness) in SITUATIONS.items():
        collection = SimulatedCollection(short=0.25, attractiveness=attractiveness)
        for method in METHODS:
            plan = SimulationPlan(
                collection=collection,
                arms=arms(first, second),
                users=Users(number=round(1.05 * GROUP * groups)),
                interleaving=SimulatedInterleaving(method, "longer"),
            )
            log = simulate(plan, seed=3).log()
            outcomes = read_outcomes(
                log, read_mixed_lists(log, None, "user", None, count_shared=False), count_repeated=False
            )
            outcome = (outcomes.win - outcomes.loss) / 2.0
            truth = 0.0 if situation == BLIND else UnitRatio.of_rows(outcomes.unit, outcome).value
            values: list[float] = []
            ts: list[float] = []
            for group in range(groups):
                in_group = outcomes.unit // GROUP == group
                ratio = UnitRatio.of_rows(outcomes.unit[in_group], outcome[in_group])
                values.append(ratio.value)
                ts.append(abs(ratio.t(truth)))
            rates = " | ".join(
                f"{sum(t < inference.critical(GROUP) for t in ts) / groups:.1%}" for inference in (once, always)
            )
            cells = f"{100 * truth:+.2f} pp | {rates} | {100 * sum(values) / groups:+.2f} pp"
            print(f"| {situation} | {method} | {cells} |", flush=True)


def sensitivity(users: int) -> None:
    """Report the number of users that interleaving and an A/B test need to distinguish two rankers."""
    print(f"\n| noise of grades | {' | '.join(METHODS)} | A/B, {METRIC} |\n| :-- | --: | --: | --: | --: |")
    for second in (0.7, 0.6, 0.4):
        plan = SimulationPlan(arms=arms(0.8, second), users=Users(number=users))
        ab_log = simulate(replace(plan, users=Users(number=10 * users)), seed=1).log()
        test = abtest(ab_log, METRIC, metrics=(), baseline="old")
        cells: list[str] = []
        needed = ""
        for method in METHODS:
            log = simulate(replace(plan, interleaving=SimulatedInterleaving(method)), seed=2).log()
            result = interleaving(log)
            (pair,) = plan_interleaving(log, past=[(result, test)]).pairs
            cells.append(f"{pair.users_interleaving:,.0f} ({100 * result.overall.value:+.1f} pp)")
            needed = f"{pair.users_abtest:,.0f} ({pair.gain:+.1%})"
        print(f"| 0.8, {second} | {' | '.join(cells)} | {needed} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--users", type=int, default=4000)
    options = parser.parse_args()
    sensitivity(options.users)
    error_rates(options.groups)


if __name__ == "__main__":
    main()
