"""Experiments: which configuration is best, what it costs, and whether it is luck."""
