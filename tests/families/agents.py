"""Test data of measures of trajectories, with searches and judgments instead of grades."""

from __future__ import annotations

import math

from hypothesis import strategies as st

_GRADES = {"a": 3, "b": 1, "c": 2, "d": 1, "x": 0}
_TRIAL = {"searches": [["a", "x"], ["a", "b"], [], ["y", "c"]], "grades": _GRADES}
_IDEAL = 3 + 2 / math.log2(3) + 1 / 2 + 1 / math.log2(5)
_HAND = "by hand"
ORACLE = {
    "SeenR": ("SeenR(rel=2)@2", _TRIAL, [], 1 / 2, "by hand: a of a and c"),
    "SeenP": ("SeenP", _TRIAL, [], 3 / 5, "by hand: a, b, and c of a, x, b, y, and c"),
    "SeennDCG": ("SeennDCG@2", _TRIAL, [], (3 + 1 / 2) / _IDEAL, "by hand: grades 3, 0, 1"),
    "RecallPerSearch": ("RecallPerSearch", _TRIAL, [], 3 / 4 / 4, _HAND),
    "NumSearches": ("NumSearches", _TRIAL, [], 4.0, _HAND),
    "SearchesToEvidence": ("SearchesToEvidence(all=true,rel=2)", _TRIAL, [], 4.0, "by hand: c is in the last one"),
    "RedundantSearches": ("RedundantSearches(share=true)", _TRIAL, [], 1 / 4, "by hand: the empty list"),
    "RepeatedSearches": ("RepeatedSearches", {**_TRIAL, "queries": ["cat", "dog", "cat", "bird"]}, [], 1.0, _HAND),
    "LateSearches": ("LateSearches(rel=3)", _TRIAL, [], 3.0, "by hand: a is in the first one"),
    "UnusedSearches": ("UnusedSearches", {**_TRIAL, "cited": ["b"], "opened": ["y"]}, [], 2.0, "by hand: the odd ones"),
    "EvidenceYield": ("EvidenceYield", {**_TRIAL, "tokens": 1500}, [], 2.0, "by hand: 3 in 1,500 tokens"),
    "HopRecall": ("HopRecall", {**_TRIAL, "hops": [["d", "b"], ["c"], ["z"]]}, [], 2 / 3, _HAND),
    "SessionDCG": ("SessionDCG", _TRIAL, [], 3 + 1 / 1.5 + 2 / 2, "by hand: 1 + log4 of 2 and 4 is 1.5 and 2"),
    "nSessionDCG": ("nSessionDCG", _TRIAL, [], 14 / 19, "by hand: the ideal is 3 + 2 + 1 / 1.5 + 1 / 1.5"),
    "AnswerAccuracy": ("AnswerAccuracy", {"right": [True, False, None, True]}, [], 2 / 3, _HAND),
    "Pass": ("Pass@2", {"right": [True, False, False, False]}, [], 1 / 2, "by hand: 3 of 6 pairs"),
    "PassAll": ("PassAll@2", {"right": [True, False, True, True]}, [], 1 / 2, "by hand: 3 of 6 pairs"),
    "ConfidenceBrier": ("ConfidenceBrier", {"right": [True, False], "confidence": [0.5, 0.5]}, [], 1 / 4, _HAND),
    "ConfidenceLogLoss": ("ConfidenceLogLoss(clip=0.25)", {"right": [True, False], "confidence": [0.5, 1.0]}, [],
                          1.5 * math.log(2), "by hand: log of 2 and 4"),
    "Effort": ("Effort(of=cost)", {"right": True, "cost": 0.25}, [], 0.25, _HAND),
}  # fmt: skip
_BASES = ("SessionDCG.b", "SessionDCG.bq", "nSessionDCG.b", "nSessionDCG.bq")
_SWITCHES = ("SearchesToEvidence.all", "HopRecall.complete", "SessionDCG.repeats", "nSessionDCG.repeats",
             *(f"{kind}Searches.share" for kind in ("Redundant", "Repeated", "Late", "Unused")))  # fmt: skip
_CHOICES = {
    "EvidenceYield.per": ["cost"],
    "Effort.of": ["cost", "latency"],
    **{key: ["trec"] for key in ("SessionDCG.form", "nSessionDCG.form")},
}
NEEDED = {"Pass.cutoff": 2, "PassAll.cutoff": 2}
VARIED = {
    **{key: [3.0] for key in _BASES},
    **{key: [True] for key in _SWITCHES},
    **_CHOICES,
    "ConfidenceLogLoss.clip": [0.1],
}
VALUES = {
    **dict.fromkeys(_BASES, st.floats(1.001, 100)),
    **dict.fromkeys(_SWITCHES, st.booleans()),
    **{name: st.sampled_from(values) for name, values in _CHOICES.items()},
    "ConfidenceLogLoss.clip": st.floats(1e-15, 0.5),
}
