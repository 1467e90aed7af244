"""The collection: what is relevant to what, and what each ranker shows. Drawn once, by the collection's own seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.online.simulation.words import EXTRAS, MODIFIERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged._types import Bools, Floats, Ints
    from judged.online.simulation.plan import SimulationPlan

_BLOCK = 4096  # topics that are drawn together: 50,000 topics need no more memory than these


@dataclass(frozen=True, eq=False)
class World:
    """The collection in numbers. Documents are numbered ``topic * documents + number``.

    Parameters
    ----------
    popularity
        Share of tasks, by topic; it adds up to 1.
    grades
        By topic and document.
    prices
        By topic and document.
    lists
        Documents of the topic, best first, by topic, arm, version and rank.
    found
        How many results a topic has.
    zero
        By topic and version: the text, written well, finds nothing.
    zero_misspelt
        By topic: so do its misspelt texts.
    """

    popularity: Floats
    grades: NDArray[np.int8]
    prices: NDArray[np.float32]
    lists: NDArray[np.int16]
    found: Ints
    zero: Bools
    zero_misspelt: Bools

    def version(self, extras: Ints, modifier: Ints, epoch: Ints) -> Ints:
        """Give the version of the lists that a text gets."""
        return (extras * MODIFIERS + modifier + epoch) % self.zero.shape[1]

    def nothing(self, topic: Ints, version: Ints, misspelt: Bools) -> Bools:
        """Tell whether texts find nothing."""
        return np.where(misspelt, self.zero_misspelt[topic], self.zero[topic, version])


def make_world(plan: SimulationPlan) -> World:
    """Draw the collection."""
    asked = plan.collection
    rng = np.random.default_rng([asked.seed, 0x0C011EC7])
    popularity = np.arange(1, asked.topics + 1) ** -asked.zipf
    shape = (asked.topics, asked.documents)
    grades = rng.choice(len(asked.grades), size=shape, p=asked.grades).astype(np.int8)
    prices = np.round(np.exp(rng.normal(np.log(plan.page.price[0]), plan.page.price[1], shape)), 2)
    found = rng.integers(asked.documents, 20 * asked.documents, asked.topics)
    short = rng.random(asked.topics) < asked.short
    found[short] = rng.integers(1, max(plan.page.size, 2), asked.topics)[short]
    zero = rng.random((asked.topics, asked.versions)) < asked.zero
    return World(
        popularity=popularity / popularity.sum(),
        grades=grades,
        prices=prices.astype(np.float32),
        lists=_lists(plan, grades, rng),
        found=found,
        zero=zero,
        zero_misspelt=rng.random(asked.topics) < asked.zero_misspelt,
    )


def _lists(plan: SimulationPlan, grades: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int16]:
    """Order each topic's documents by grade and noise, for every arm and version."""
    topics, documents = grades.shape
    lists = np.empty((topics, len(plan.arms), plan.collection.versions, plan.depth), dtype=np.int16)
    spread = np.array([arm.noise for arm in plan.arms])[:, None, None]
    for begin in range(0, topics, _BLOCK):
        some = grades[begin : begin + _BLOCK, None, None, :]
        noise = rng.standard_normal((len(some), len(plan.arms), plan.collection.versions, documents))
        order = np.argsort(-(some + spread * noise), axis=-1, kind="stable")
        lists[begin : begin + _BLOCK] = order[..., : plan.depth]
    return lists


def first_forms() -> tuple[tuple[int, int], ...]:
    """Give the extras and the modifiers that a task can begin with: all are as likely."""
    return tuple((extras, modifier) for extras in range(1, EXTRAS - 1) for modifier in range(MODIFIERS))
