"""Gain against cost."""

from judged.diagnosis.tradeoff.answer import Tradeoff, TradeoffRow
from judged.diagnosis.tradeoff.front import tradeoff

__all__ = ["Tradeoff", "TradeoffRow", "tradeoff"]
