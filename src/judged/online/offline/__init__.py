"""Agreement of judgments with user behavior."""

from judged.online.offline.agreement import preference_agreement
from judged.online.offline.concordance import IntervalEstimate
from judged.online.offline.outcome_prediction import against_qrels
from judged.online.offline.outcome_results import CalibrationBin, OfflineOnline, OutcomeRelation, TopicRelation
from judged.online.offline.preference_rules import (
    RULES,
    AgreementRow,
    PreferenceAgreement,
    RepeatedPreferences,
    click_preferences,
)

__all__ = [
    "RULES",
    "AgreementRow",
    "CalibrationBin",
    "IntervalEstimate",
    "OfflineOnline",
    "OutcomeRelation",
    "PreferenceAgreement",
    "RepeatedPreferences",
    "TopicRelation",
    "against_qrels",
    "click_preferences",
    "preference_agreement",
]
