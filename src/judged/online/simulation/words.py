"""The texts of queries: words that look real, and reformulations that are what they are called.

Departments share no word, so that texts of different departments are never alike. Within a topic a text is
"brand modifier noun extra...": a substitution changes the modifier, extras come and go, and a misspelling doubles a
letter of the brand.
"""

from __future__ import annotations

from functools import lru_cache

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
