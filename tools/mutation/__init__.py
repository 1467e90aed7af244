"""Mutation testing: places to mutate, the tests that execute them, and runs of those tests on mutated copies."""
