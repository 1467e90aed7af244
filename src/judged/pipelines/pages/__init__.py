"""Pages about traces, answers, and experiments."""
