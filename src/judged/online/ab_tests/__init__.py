"""A/B tests from logs: assignment, validity checks, differences between arms, verdicts, and planning."""
