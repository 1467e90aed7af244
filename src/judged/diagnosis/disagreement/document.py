"""A disagreement as plain values, ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.diagnosis.disagreement.layout import sentences
from judged.diagnosis.disagreement.sides import SIGNS
from judged.evaluation.provenance import provenance
from judged.stats.pairing import plain

if TYPE_CHECKING:
    from judged.diagnosis.disagreement.sides import TwoSides


def document(found: TwoSides) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    return {
        **provenance(found.scores).to_dict(),
        "systems": list(found.systems),
        "chosen": found.chosen,
        "measures": [plain(one) | {"in_errors": plain(one.in_errors)} for one in found.means],
        "opposite": found.opposite,
        "rests_on": found.rests_on,
        "agreement": {
            row: dict(zip(SIGNS, counts, strict=True)) for row, counts in zip(SIGNS, found.agreement, strict=True)
        },
        "orders": None if found.orders is None else found.orders.to_dict(),
        "topics": [
            {
                "query_id": one.query_id,
                **({"query": one.query} if one.query else {}),
                "scores": {name: list(pair) for name, pair in zip(found.measures, one.scores, strict=True)},
                "differences": list(one.differences),
                "pull": one.pull,
                "reasons": [reason.to_dict() for reason in one.reasons],
            }
            for one in found.topics
        ],
        "slices": [plain(one) for one in found.slices],
        "sentences": list(sentences(found)),
        "warnings": list(found.warnings),
    }
