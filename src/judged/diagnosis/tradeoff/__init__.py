"""Gain against cost."""

from judged.diagnosis.tradeoff.making import Tradeoff, TradeoffRow, tradeoff

__all__ = ["Tradeoff", "TradeoffRow", "tradeoff"]
