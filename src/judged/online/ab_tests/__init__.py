"""A/B tests from logs: who was assigned to what, whether the test is sound, what differs, and what follows."""
