"""Time-biased measures: the later in time or text a document is read, the less it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.gain import GAIN, TopRanks, hit_gains
from judged.scoring.measures.parameters import (
    CUTOFF,
    REL,
    UNDEFINED,
    Parameter,
    cumulative_cost,
    format_value,
    hit_positions,
    read_amounts,
    real,
)
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import GainAttribute
    from judged.scoring.measures.parameters import Undefined


HALFLIFE = Parameter("Seconds after which half of the users have stopped.", 224.0, real(1e-6), values="number above 0")
CLICK = Parameter("The probability that the summary of a relevant document is clicked.", 0.64, real(0, 1))
CLICK_OTHER = Parameter(
    "The probability that the summary of a document that is not relevant is clicked.", 0.39, real(0, 1)
)
SAVE = Parameter("The probability that a relevant document, once read, is recognized as relevant.", 0.77, real(0, 1))
SUMMARY = Parameter("Seconds to read a summary.", 4.4, real(0))
WORD = Parameter("Seconds to read one word, the unit of length.", 0.018, real(0))
DOCUMENT = Parameter("Seconds to read a document, in addition to the seconds for its words.", 7.8, real(0))


@measure(
    category="facts about documents",
    cite="Smucker and Clarke 2012",
    use="The effort of users matters, and documents differ in length. Ranks are converted to seconds, with times"
    " from a user study.",
    misleads="The constants come from one study of newspaper search in 2012, and length must be counted in words, as in"
    " that study. In the paper, documents that were read before take no time; here every document is new.",
    properties=Properties(high=None, monotone=False, depends_on_missing=False),
    tools={"cwl_eval": "TBG-H@224 (a different score: see CwlTBG)"},
)
class TBG(Measure):
    r"""Time-biased gain: the gain of each relevant document, times the share of users who still search at that time.

    .. math:: \mathrm{TBG} = \sum_{\text{relevant}} p_c\, p_s\, 2^{-T(r)/h}, \qquad
        T(r) = \sum_{m < r} \left(t_s + p_c(m)\,(t_w\, l_m + t_d)\right)

    A user reads a summary (``summary`` seconds), clicks on it (with probability ``click`` if the document is relevant,
    else ``click_other``), reads the document (``word`` seconds per word plus ``document`` seconds), and saves it if it
    is relevant (with probability ``save``). Unjudged documents are read like documents that are not relevant. The
    table of documents must have ``length``, in words. cwl_eval prints another score under this name: `CwlTBG`.

    Examples
    --------
    The first document gains 0.64 * 0.77 = 0.4928 and takes 4.4 + 0.64 * (0.018 * 1000 + 7.8) = 20.912 seconds, after
    which a share of 2^(-20.912/224) = 0.93734 of the users is still searching:

    >>> round(TBG().of_list([1, 1], facts={"length": [1000, 500]}), 5)  # 0.4928 (1 + 0.93734)
    0.95472
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)
    halflife: float = param(HALFLIFE)
    click: float = param(CLICK)
    click_other: float = param(CLICK_OTHER)
    save: float = param(SAVE)
    summary: float = param(SUMMARY)
    word: float = param(WORD)
    document: float = param(DOCUMENT)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Sum the gains of the relevant documents, with exponential decay in the time of each document."""
        length, relevant = read_amounts(judged, "length", self, allow_zero=True), judged.relevant(self.rel)
        click_probability = np.full(len(length), self.click_other)
        click_probability[hit_positions(judged)[relevant]] = self.click
        seconds = self.summary + click_probability * (self.word * length + self.document)
        start, _ = cumulative_cost(judged, seconds)
        # Exponential decay with a half-life: the share of users who are still searching after this time.
        gain, decay = self.click * self.save, np.exp2(-start / self.halflife)
        counted = relevant & judged.within(self.cutoff)
        judged.step("gain", np.full(len(judged), gain), "click * save", click=self.click, save=self.save)
        if judged.calculation is not None:
            top = TopRanks.down_to(judged, counted)
            how = f"{format_value(self.click)} if relevant, else {format_value(self.click_other)}"
            top.column("clicked", click_probability, how)
            word, document = format_value(self.word), format_value(self.document)
            how = f"{format_value(self.summary)} + clicked * ({word} * length + {document})"
            top.column("seconds", seconds, how, length=length, clicked=click_probability)
        judged.column("time", start, "sum of seconds over all ranks above", where=counted)
        judged.column("decay", decay, f"2^(-time / {format_value(self.halflife)})", where=counted, time=start)
        return judged.total(self, gain * decay, "gain * decay", where=counted, gain=gain, decay=decay)


MAX_LENGTH = Parameter(
    "The amount of text at which the discount reaches 0, in the same unit as the lengths of documents.",
    None,
    real(1e-6),
    required=True,
    values="number above 0",
)


@measure(
    category="facts about documents",
    cite="Sakai and Dou 2013",
    use="Users read texts of different lengths one after the other: snippets, summaries, answers, documents.",
    misleads="The score depends strongly on L, which is 132000 characters in the paper and 1000 in cwl_eval. Gains"
    " are not"
    " normalized, so scores are comparable only on the same scale of grades.",
    aliases={"U-measure": {}},
    properties=Properties(high=None, graded=True, depends_on_missing=False),
    tools={"cwl_eval": "U-L@1000 (a different score: see CwlU)"},
)
class UMeasure(Measure):
    r"""U-measure: the sum of the gains, each discounted by the length of the text up to the end of the document.

    .. math:: \mathrm{U} = \sum_r g_r \max\left(0,\; 1 - \frac{\mathrm{pos}(r)}{L}\right), \qquad
        \mathrm{pos}(r) = \sum_{m \le r} l_m

    The text that the user reads, the trailtext of the paper, consists of everything that was returned. ``length`` in
    the table of documents is the amount of text of each document, in the unit of L. The paper has a factor 1/N before
    the sum and sets N = 1, so the sum is not divided. cwl_eval prints another score under this name: `CwlU`.

    Examples
    --------
    The documents end after 200 and 500 of 1000 characters:

    >>> UMeasure(L=1000).of_list([3, 1], facts={"length": [200, 300]})  # 3 (0.8) + 1 (0.5)
    2.9000000000000004
    """

    cutoff: int | None = param(CUTOFF)
    L: float = param(MAX_LENGTH)
    gain: GainAttribute = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Sum the gains, each discounted by the position where its document ends."""
        length = read_amounts(judged, "length", self, allow_zero=True)
        _, end = cumulative_cost(judged, length)
        gain, counted = hit_gains(judged, self.gain, self.cutoff)
        decay = np.maximum(0.0, 1.0 - end / self.L)
        if judged.calculation is not None:
            TopRanks.down_to(judged, counted).column("length", length)
        judged.column("end", end, "sum of length down to this rank", where=counted)
        judged.column("decay", decay, f"max(0, 1 - end / {format_value(self.L)})", where=counted, end=end)
        return judged.total(self, gain * decay, "gain * decay", where=counted, gain=gain, decay=decay)
