"""A comparison as text for a terminal, as Markdown, and as LaTeX."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from judged.comparison.captions import caption, detectable, intervals, pair_caption
from judged.comparison.layout import leaderboard, matrix, pair_table
from judged.comparison.marks import BETTER, TIMES, WORSE
from judged.comparison.sentences import topics_sentence
from judged.tables import latex_text, markdown_prose, markdown_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.compared import ComparedSystems
    from judged.comparison.pair import MeasureComparison, Pair
    from judged.tables import Table

_WIDTH = 100  # of sentences, where no width is given
_MOST_PAIRS, _MOST_SYSTEMS, _MOST_SENTENCES = 10, 10, 3


def text(comparison: ComparedSystems, *, width: int | None, pairs: bool) -> str:
    """Write the leaderboard, and then what was found by each measure."""
    blocks = [leaderboard(comparison).text(width=width), wrapped(caption(comparison), width)]
    for one in comparison.measures:
        blocks += _measure_blocks(comparison, one, width, every=pairs)
    return "\n\n".join(block for block in blocks if block)


def _measure_blocks(
    comparison: ComparedSystems, one: MeasureComparison, width: int | None, *, every: bool
) -> list[str]:
    """Write the matrix of a measure, its pairs, and sentences; not more of each than can be taken in."""
    if not one.pairs:
        return []
    blocks = [f"== {one.name} =="]
    if one.overall:
        blocks.append(wrapped(one.overall, width))
    systems, everyone = len(comparison.scores.runs), comparison.choices.baseline is None
    ordered = by_rank(comparison, one)
    few = every or len(ordered) <= _MOST_PAIRS
    shown = ordered if few else ordered[: min(_MOST_PAIRS, systems - 1)]  # without a baseline: those of the best
    if everyone and systems > 2 and (every or systems <= _MOST_SYSTEMS):
        blocks.append(f"{matrix(comparison, one).text(width=width)}\n{_matrix_note(comparison)}")
    if systems > 2:
        blocks.append(
            f"{pair_table(comparison, shown).text(width=width)}\n{wrapped(_pair_note(comparison, one), width)}"
        )
        if len(shown) < len(ordered):
            blocks[-1] += f"\n... {len(ordered) - len(shown)} more pairs (--pairs)"
    sentences = len(ordered) if every or len(ordered) <= _MOST_SENTENCES else 1
    said = [f"{pair.sentence} {topics_sentence(pair)}".rstrip() for pair in ordered[:sentences]]
    blocks.append("\n".join(wrapped(one, width) for one in said))
    return blocks


def by_rank(comparison: ComparedSystems, one: MeasureComparison) -> list[Pair]:
    """Give the pairs of the best system first, best against next best; of a baseline in the order of the systems."""
    place = {comparison.scores.run_names[at]: rank for rank, at in enumerate(one.order())}
    if comparison.choices.baseline is not None:
        return sorted(one.pairs, key=lambda pair: place[pair.second])
    return sorted(one.pairs, key=lambda pair: sorted((place[pair.first], place[pair.second])))


def wrapped(sentence: str, width: int | None) -> str:
    """Break a text into lines."""
    return textwrap.fill(sentence, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)


def markdown(comparison: ComparedSystems, *, pairs: bool) -> str:
    """Write tables with the caption as a paragraph under the first."""
    blocks = [leaderboard(comparison).markdown(), markdown_prose(caption(comparison) + ".")]
    for one in _with_pairs(comparison, pairs=pairs):
        blocks.append(f"**{markdown_text(one.name)}**")
        for table, note in _tables(comparison, one):
            blocks += [table.markdown(), markdown_prose(f"{note}.")]
    return "\n\n".join(blocks)


def latex(comparison: ComparedSystems, *, pairs: bool) -> str:
    """Write LaTeX tables, each with a caption of its own."""
    made = [latex_float(leaderboard(comparison), f"{_measures(comparison)}; {caption(comparison)}")]
    rules = pair_caption(comparison)
    for one in _with_pairs(comparison, pairs=pairs):
        made += [latex_float(table, f"{one.name}: {note}; {rules}") for table, note in _tables(comparison, one)]
    return "\n\n".join(made)


def latex_float(table: Table, caption: str) -> str:
    """Put a table into an environment with its caption above it."""
    said = _with_signs(latex_text(caption))
    head = [r"\begin{table}", r"\centering", rf"\caption{{{said}.}}"]
    return "\n".join([*head, _with_signs(table.latex()), r"\end{table}"])


def _with_signs(text: str) -> str:
    """Write the signs that our tables use as LaTeX commands."""
    for sign, command in ((BETTER, r"$\dagger$"), (WORSE, r"$\ddagger$"), (TIMES, r"$\times$")):
        text = text.replace(sign, command)
    return text


def _matrix_note(comparison: ComparedSystems) -> str:
    """Say what stands in a matrix."""
    below = "P(higher) of the system above" if comparison.choices.test == "bayes" else "p"
    return f"above the diagonal row minus column, below it {below}; significant ones are marked *"


def _pair_note(comparison: ComparedSystems, one: MeasureComparison) -> str:
    """Say what stands in a table of pairs."""
    notes = (intervals(one.pairs, comparison.choices, one.family), detectable(one.pairs))
    return "; ".join(["significant differences are marked *", *(note for note in notes if note)])


def _measures(comparison: ComparedSystems) -> str:
    names = [one.name for one in comparison.measures]
    return f"{', '.join(names)} of {len(comparison.scores.runs)} systems"


def _with_pairs(comparison: ComparedSystems, *, pairs: bool) -> Sequence[MeasureComparison]:
    return [one for one in comparison.measures if one.pairs] if pairs else []


def _tables(comparison: ComparedSystems, one: MeasureComparison) -> list[tuple[Table, str]]:
    """Give the tables of one measure, each with what it must say."""
    made = [(pair_table(comparison, by_rank(comparison, one)), _pair_note(comparison, one))]
    if comparison.choices.baseline is None and len(comparison.scores.runs) > 2:
        made.insert(0, (matrix(comparison, one), _matrix_note(comparison)))
    return made
