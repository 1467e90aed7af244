"""Doors for people who come from other tools: their commands, calls and names, on our engine."""
