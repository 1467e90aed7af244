"""Phrases that many metrics share."""

FOX = "Fox, Karnawat, Mydland, Dumais and White, Evaluating implicit measures to improve web search (TOIS 2005)"
PAGE = "the page"
SESSION = "the session"
ONCE = "clicks that name the page; what stands at one rank, or without a rank is one object, counts once"
OWN = "what the page itself says"
POSITION = (
    "Clicks follow rank: the same results in another order give another value, so read it beside CTR by rank, and "
    "compare rankers by an experiment."
)
SATISFIED = "satisfied click: a dwell of t seconds or more, or nothing after it in the session (last click satisfies)"
"""What SatisfiedClicks counts and every success is made of; the choice for visits whose end nobody saw has a name."""
TWO_WAYS = "More clicks are better where users look for results, and worse where the page itself should answer."
