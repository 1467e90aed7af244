"""The evaluator: a list typed by hand, and what every measure makes of it."""
