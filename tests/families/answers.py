"""Test data of measures over answers, with parts instead of grades."""

from __future__ import annotations

from hypothesis import strategies as st

_NUGGETS = {"vital": ["support", "partial"], "okay": ["not"]}
_SENTENCES = {"sentences": [["support", "not"], ["partial"], []]}
_NUGGETIZER = "pi_trec's test of AutoNuggetizer's calculate_scores, on the same three nuggets"
_HAND, _WORDS = "by hand", ["support", "partial", "not"]
ORACLE = {
    "NuggetRecall": ("strict_all_score", _NUGGETS, [], 1 / 3, _NUGGETIZER),
    "Completeness": ("Completeness", {"vital": ["support", "support"], "okay": ["not"]}, [], 1.0, _HAND),
    "SupportP": ("SupportP", _SENTENCES, [], (1 + 0 + 0.5) / 3, _HAND),
    "SupportR": ("SupportR", _SENTENCES, [], (1 + 0.5 + 0) / 3, _HAND),
    "SentencePrecision": ("SentencePrecision(uncited=true)", {"sentences": [["support"], ["support", "not"], []]}, [],
                          1 / 3, _HAND),
    "ArgueF": ("ArgueF", {**_SENTENCES, "vital": ["support"]}, [], 0.0, "by hand: no citing sentence is all supported"),
    "Groundedness": ("Groundedness", {"sentences": [[]] * 3, "grounded": _WORDS}, [], 0.5, _HAND),
    "ContradictionRate": ("ContradictionRate", {"sentences": [["contradicts"], ["support"]]}, [], 0.5, _HAND),
    "Correctness": ("Correctness", {"correct": "partial"}, [], 0.5, _HAND),
    "RightAbstention": ("RightAbstention", {"answerable": False}, [], 0.0, _HAND),
    "WrongAbstention": ("WrongAbstention", {"answerable": True, "abstained": True}, [], 1.0, _HAND),
    "AnswerLength": ("AnswerLength", {"words": 7}, [], 7.0, _HAND),
    "CitationRecall": ("CitationRecall(rel=2)", {"context": [2, 1, 2], "missing": [2], "cited": [1]}, [], 1 / 3, _HAND),
    "CitationPrecision": ("CitationPrecision(rel=2)", {"context": [2, 1, None], "missing": [3], "cited": [1, 2, 3]}, [],
                          1 / 3, "by hand: others have grade 1, and no judgment"),
    "ContextUtility": ("ContextUtility(distractor=-1)", {"context": [1, 0, 0, None]}, [], -1 / 3, "(1 - 1 - 1) / 3"),
    "EvidencePosition": ("EvidencePosition", {"context": [0, 1, 0, 0, 1]}, [], 0.625, "(1/4 + 4/4) / 2"),
    "ContextRedundancy": ("ContextRedundancy", {"vital": [None] * 2, "context": [1] * 3, "holds": [[0], [1], [1]]}, [],
                          1 / 3, _HAND),
    "ExactMatch": ("ExactMatch", {"answer": "the Broncos.", "references": ["Denver", "Broncos"]}, [], 1.0, _HAND),
    "TokenF1": ("TokenF1", {"answer": "It was in 1871.", "references": ["1871"]}, [], 2 / 5, "2 * 1 / (4 + 1)"),
    "AnswerRecall": ("AnswerRecall", {"references": ["two years"], "passages": ["Two months."]}, [], 0.5, _HAND),
    "LexicalSupport": ("LexicalSupport", {"sentence_texts": ["It has steel burrs."], "passages": ["Burrs."]}, [], 0.5,
                       _HAND),
}  # fmt: skip
VARIED = {
    **{f"{name}.rel": [2.0] for name in ("CitationRecall", "CitationPrecision", "ContextUtility", "EvidencePosition")},
    "partial": [0.0, 1.0],
    "okay": [0.5],
    "vital": [True],
    "first": [True],
    "uncited": [True],
    "distractor": [-1.0],
}
VALUES = {
    **dict.fromkeys(("partial", "okay"), st.floats(0, 1)),
    **dict.fromkeys(("vital", "first", "uncited"), st.booleans()),
    "distractor": st.floats(-1, 1),
}
