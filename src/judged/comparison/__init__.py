"""Comparing systems: tests over topics, corrections, effects, and the tables that a paper needs."""

from judged.comparison.answer import Comparison, MeasureComparison
from judged.comparison.choices import Choices
from judged.comparison.collections import Collections, collections_of_scores, compare_collections
from judged.comparison.compare import compare
from judged.comparison.orders import OrderAgreement, SystemOrders, orders
from judged.comparison.pair import Pair
from judged.comparison.plans import Plans, power

__all__ = [
    "Choices",
    "Collections",
    "Comparison",
    "MeasureComparison",
    "OrderAgreement",
    "Pair",
    "Plans",
    "SystemOrders",
    "collections_of_scores",
    "compare",
    "compare_collections",
    "orders",
    "power",
]
