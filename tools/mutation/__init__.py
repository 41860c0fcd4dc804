"""Mutation testing: changes, the tests that reach them, trials, and those listed with a reason."""
