"""What to write instead of a name that trec_eval does not have, and how its parameters are written."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from judged.errors import JudgedError
from judged.scoring.measures.grammar import find, parse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_CUTOFFS = "cutoffs: {}.5,10"
_GAINS = "the gain of each grade: {}.1=3,2=9"
_FORMS: dict[str, str] = {
    **dict.fromkeys(("P", "recall", "ndcg_cut", "map_cut", "relative_P", "success", "P_avgjg", "unj"), _CUTOFFS),
    **dict.fromkeys(("G", "dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg"), _GAINS),
    **dict.fromkeys(("Rprec_mult", "Rprec_mult_avgjg"), "multiples of the number of relevant documents: {}.0.5,1"),
    "iprec_at_recall": "recall points, a line each: {}.0.1,0.5",
    "11pt_avg": "recall points, averaged: {}.0.25,0.5,0.75",
    "relstring": "how many documents: {}.20",
    "utility": "4 coefficients, for relevant and other documents returned, then for those not returned: {}.1,-1,0,0",
    "set_F": "the weight of recall, which is the square of beta: {}.0.5",
    "rbp": "the persistence, and the gain of each grade: {}.p=0.8 or {}.p=0.8,1=1,2=3",
    "rbp_resid": "the persistence: {}.p=0.8",
}
_BY_CUTOFF = {name for name, form in _FORMS.items() if form == _CUTOFFS}


def parameters_of(name: str) -> str:
    """Say how trec_eval's parameters of a measure are written; nothing for one that takes none.

    >>> parameters_of("ndcg_cut"), parameters_of("map")
    ('cutoffs: ndcg_cut.5,10', '')
    """
    return _FORMS.get(name, "").replace("{}", name)


def instead(spec: str, names: Mapping[str, str], groups: Collection[str], later: Collection[str]) -> str:
    """Say what to write for a name that is not there."""
    root, _, written = spec.partition(".")
    if root in later:
        return f"{root} is not in trec_eval 9: leave out --dialect trec_eval-9"
    if not written and (root in names or root in groups):
        form = parameters_of(root)
        return f"write {root}" + (f", or name {form}" if form else "")
    found = _underscored(spec, names) or _of_ours(spec, names)
    if found:
        return found
    known = {name.casefold(): name for name in (*names, *groups)}
    close = difflib.get_close_matches(root.casefold(), known, 1, 0.6)
    if close:
        return f"did you mean {known[close[0]]}" + (f".{written}" if written else "") + "?"
    special = ("prefs_", "runid", "num_q", "relstring")
    shown = [name for name in names if not name.startswith(special) and not name.endswith("_avgjg")]
    return f"write one of {' '.join(shown)}"


def _underscored(spec: str, names: Mapping[str, str]) -> str:
    """Read a name as it is printed, ``P_10``, and one in another case, ``MAP``."""
    low = spec.casefold()
    fitting = [name for name in names if re.match(rf"{re.escape(name.casefold())}(?:[_.@:](?:[-+.0-9]|p=)|$)", low)]
    if not fitting:
        return ""
    name = max(fitting, key=len)
    written = spec[len(name) + 1 :]
    if not written:
        return f"did you mean {name}?"
    if written.isdecimal() and f"{name}_cut" in names:
        return f"write {name}_cut.{written}"
    if name not in _FORMS:
        return f"write {name}, which takes no parameters here"
    return f"write {name}.{written}"


def _of_ours(spec: str, names: Mapping[str, str]) -> str:
    """Read one of our names: ``RR``, ``nDCG@10``, ``precision``."""
    bare = re.fullmatch(r"([^@(.]+)(?:@([0-9]+))?", spec)
    try:
        ours = find(bare[1])[0].name if bare else parse(spec).entry.name
    except JudgedError:
        return ""
    theirs = [name for name, our in names.items() if our == ours]
    if bare is None or not theirs:
        return f"'judged evaluate -m \"{spec}\"' computes it; trec_eval does not"
    cut = [name for name in theirs if name in _BY_CUTOFF]
    whole = [name for name in theirs if name not in _BY_CUTOFF]
    if bare[2]:
        return f"write {cut[0]}.{bare[2]}" if cut else f"'judged evaluate -m {spec}' computes it; trec_eval does not"
    return f"did you mean {(whole or cut)[0]}?"
