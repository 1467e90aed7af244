"""Evaluator: score a typed list by every measure."""
