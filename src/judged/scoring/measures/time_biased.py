"""Time-biased gain: relevant documents lose worth with the time that it takes to reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.gain import GAIN, TopRanks, gained
from judged.scoring.measures.parameters import (
    CUTOFF,
    REL,
    UNDEFINED,
    Parameter,
    amounts,
    hit_places,
    real,
    spell,
    used_up,
)
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import TakesGain
    from judged.scoring.measures.parameters import Undefined


HALFLIFE = Parameter("Seconds after which half of the users have stopped.", 224.0, real(1e-6), values="number above 0")
CLICK = Parameter("The probability that the summary of a relevant document is clicked.", 0.64, real(0, 1))
CLICK_OTHER = Parameter("The probability that the summary of any other document is clicked.", 0.39, real(0, 1))
SAVE = Parameter("The probability that a relevant document, once read, is recognised as such.", 0.77, real(0, 1))
SUMMARY = Parameter("Seconds to read a summary.", 4.4, real(0))
WORD = Parameter("Seconds to read one unit of length, a word.", 0.018, real(0))
DOCUMENT = Parameter("Seconds that any document takes beside its length.", 7.8, real(0))


@measure(
    category="facts about documents",
    cite="Smucker and Clarke 2012",
    use="Effort matters and documents differ in length: ranks are turned into seconds of a measured user population.",
    misleads="Its constants come from one study of newspaper search in 2012, and length must be counted as there, in"
    " words. Documents seen before cost no time in the paper; here every document is new.",
    properties=Properties(high=None, monotone=False, missing_matter=False),
    tools={"cwl_eval": "TBG-H@224 (another number: see CwlTBG)"},
)
class TBG(Measure):
    r"""Time-biased gain: each relevant document counts by the share of users still searching when they reach it.

    .. math:: \mathrm{TBG} = \sum_{\text{relevant}} p_c\, p_s\, 2^{-T(r)/h}, \qquad
        T(r) = \sum_{m < r} \left(t_s + p_c(m)\,(t_w\, l_m + t_d)\right)

    A user reads a summary (``summary`` seconds), clicks on it (``click`` if the document is relevant, else
    ``click_other``), reads the document (``word`` seconds a word and ``document`` seconds) and keeps it if it is
    relevant (``save``). Documents without a judgment are read like those that are not relevant. The table of
    documents must have ``length``, in words. cwl_eval prints another number under this name: `CwlTBG`.

    Examples
    --------
    The first document gains 0.64 0.77 = 0.4928, and takes 4.4 + 0.64 (0.018 1000 + 7.8) = 20.912 seconds, in which
    users become 2^(-20.912/224) = 0.93734 of what they were:

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
        """Add up what is left of each relevant document's gain when it is reached."""
        length, relevant = amounts(judged, "length", self, zero=True), judged.relevant(self.rel)
        clicked = np.full(len(length), self.click_other)
        clicked[hit_places(judged)[relevant]] = self.click
        seconds = self.summary + clicked * (self.word * length + self.document)
        before, _ = used_up(judged, seconds)
        gain, decay = self.click * self.save, np.exp2(-before / self.halflife)
        counted = relevant & judged.within(self.cutoff)
        judged.step("gain", np.full(len(judged), gain), "click * save", click=self.click, save=self.save)
        if judged.working is not None:
            top = TopRanks.down_to(judged, counted)
            top.column("clicked", clicked, f"{spell(self.click)} if relevant, else {spell(self.click_other)}")
            how = f"{spell(self.summary)} + clicked * ({spell(self.word)} * length + {spell(self.document)})"
            top.column("seconds", seconds, how, length=length, clicked=clicked)
        judged.column("time", before, "seconds of all ranks above", where=counted)
        judged.column("decay", decay, f"2^(-time / {spell(self.halflife)})", where=counted, time=before)
        return judged.total(self, gain * decay, "gain * decay", where=counted, gain=gain, decay=decay)


READ = Parameter(
    "The length of text, in the unit of the lengths, at which a document has lost all its worth.",
    None,
    real(1e-6),
    required=True,
    values="number above 0",
)


@measure(
    category="facts about documents",
    cite="Sakai and Dou 2013",
    use="What is read can be put in a row as text: snippets, summaries, answers, documents of different lengths.",
    misleads="L decides it: the paper takes 132000 characters, cwl_eval 1000. Gains are not"
    " scaled, so numbers can be compared only on one scale of grades.",
    aliases={"U-measure": {}},
    properties=Properties(high=None, graded=True, missing_matter=False),
    tools={"cwl_eval": "U-L@1000 (another number: see CwlU)"},
)
class UMeasure(Measure):
    r"""U-measure: each gain, discounted by how much text has been read where its document ends.

    .. math:: \mathrm{U} = \sum_r g_r \max\left(0,\; 1 - \frac{\mathrm{pos}(r)}{L}\right), \qquad
        \mathrm{pos}(r) = \sum_{m \le r} l_m

    The text of the paper's user, the trailtext, is here everything that was returned: ``length`` in the table of
    documents is how much of each is read, in the unit of L. The paper has a factor 1/N before the sum and sets N = 1,
    so nothing is divided, there or here. cwl_eval prints another number under this name: `CwlU`.

    Examples
    --------
    The documents end at 200 and 500 characters, of 1000:

    >>> UMeasure(L=1000).of_list([3, 1], facts={"length": [200, 300]})  # 3 (0.8) + 1 (0.5)
    2.9000000000000004
    """

    cutoff: int | None = param(CUTOFF)
    L: float = param(READ)
    gain: TakesGain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Add up the gains, each discounted by where its document ends."""
        length = amounts(judged, "length", self, zero=True)
        _, end = used_up(judged, length)
        gain, counted = gained(judged, self.gain, self.cutoff)
        decay = np.maximum(0.0, 1.0 - end / self.L)
        if judged.working is not None:
            TopRanks.down_to(judged, counted).column("length", length)
        judged.column("end", end, "length of all ranks down to this one", where=counted)
        judged.column("decay", decay, f"max(0, 1 - end / {spell(self.L)})", where=counted, end=end)
        return judged.total(self, gain * decay, "gain * decay", where=counted, gain=gain, decay=decay)
