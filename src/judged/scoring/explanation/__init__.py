"""Explain how a score is computed, and compare it with the scores of other tools."""

from judged.scoring.explanation.explain import Explanation, explain, explain_list
from judged.scoring.explanation.other_tools import ToolComparison, compare_tools
from judged.scoring.explanation.sheets import Sheet, SheetLine

__all__ = ["Explanation", "Sheet", "SheetLine", "ToolComparison", "compare_tools", "explain", "explain_list"]
