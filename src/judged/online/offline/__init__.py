"""Judgments against users: whether one predicts the other."""

from judged.online.offline.against import against_qrels
from judged.online.offline.agreement import preference_agreement
from judged.online.offline.agreement_answer import AgreementRow, PreferenceAgreement, Repeated
from judged.online.offline.answer import OfflineOnline
from judged.online.offline.clusters import Estimate
from judged.online.offline.preferences import RULES, click_preferences
from judged.online.offline.rows import CalibrationBin, Relation, TopicRelation

__all__ = [
    "RULES",
    "AgreementRow",
    "CalibrationBin",
    "Estimate",
    "OfflineOnline",
    "PreferenceAgreement",
    "Relation",
    "Repeated",
    "TopicRelation",
    "against_qrels",
    "click_preferences",
    "preference_agreement",
]
