"""All rules, in the order in which their advice is given."""

from __future__ import annotations

from judged.advice.rules_avoid import AVOID
from judged.advice.rules_measures import MEASURES
from judged.advice.rules_notes import NOTES

RULES = (*MEASURES, *AVOID, *NOTES)
