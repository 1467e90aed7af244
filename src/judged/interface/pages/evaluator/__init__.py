"""Evaluator: score a list by every measure."""
