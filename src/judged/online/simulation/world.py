"""The collection that users search: words, objects, needs, and what is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged._types import Bools, Floats, Ints
    from judged.online.simulation.plan import SimulationPlan

MODIFIERS = 4
EXTRAS = 4
"""At most so many extra words, less one: a text has three to six words."""

_DEPARTMENTS: tuple[tuple[str, str, str], ...] = (
    (
        "sofa table wardrobe bookcase bench cabinet",
        "wooden leather velvet rattan marble walnut",
        "assembled bedroom narrow corner storage hallway",
    ),
    (
        "laptop monitor keyboard headphones router printer",
        "wireless bluetooth ergonomic portable gaming refurbished",
        "charger warranty backlit compact quiet office",
    ),
    (
        "trousers jacket sweater dress sneakers raincoat",
        "cotton woollen striped waterproof denim quilted",
        "ladies children hooded summer oversize petite",
    ),
    (
        "saucepan kettle toaster blender casserole grater",
        "stainless ceramic copper electric enamel induction",
        "dishwasher family lidded measuring breakfast camping",
    ),
    (
        "tent bicycle canoe backpack lantern hammock",
        "folding ultralight inflatable insulated alpine mountaineering",
        "expedition weekend repair beginners rental autumn",
    ),
    (
        "novel atlas dictionary cookbook biography encyclopedia",
        "illustrated annotated translated hardcover abridged historical",
        "edition signed pocket audio review collected",
    ),
)
DEPARTMENTS = len(_DEPARTMENTS)
_VOCABULARY = tuple(tuple(tuple(words.split()) for words in one) for one in _DEPARTMENTS)
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def brand(number: int) -> str:
    """Give a name of three or more syllables, another for every number.

    >>> brand(0), brand(7)
    ('bababa', 'babadi')
    """
    syllables: list[str] = []
    while number or len(syllables) < 3:
        number, vowel = divmod(number, len(_VOWELS))
        number, consonant = divmod(number, len(_CONSONANTS))
        syllables.append(_CONSONANTS[consonant] + _VOWELS[vowel])
    return "".join(reversed(syllables))


@lru_cache(maxsize=1 << 18)
def text(topic: int, extras: int, modifier: int, misspelt: int) -> str:
    """Write a query; `misspelt` is 1 or 0.

    >>> text(0, 0, 0, 0), text(0, 2, 1, 0), text(0, 0, 0, 1)
    ('matopo wooden sofa', 'matopo leather sofa assembled bedroom', 'mattopo wooden sofa')
    """
    department, number = topic % DEPARTMENTS, topic // DEPARTMENTS
    nouns, modifiers, more = _VOCABULARY[department]
    name = brand(_spread(topic))
    if misspelt:
        name = f"{name[:3]}{name[2]}{name[3:]}"
    first = modifiers[(number + modifier) % len(modifiers)]
    added = (more[(number + at) % len(more)] for at in range(extras))
    return " ".join((name, first, nouns[number % len(nouns)], *added))


def _spread(topic: int) -> int:
    """Give neighbouring topics brands that are far apart: one to one below 70^3, the number of three syllables."""
    many = (len(_VOWELS) * len(_CONSONANTS)) ** 3
    return (topic * 190_027 + 151_103) % many if topic < many else topic


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
