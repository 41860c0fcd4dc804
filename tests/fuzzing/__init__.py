"""Fuzzing of every parser: how inputs are made, where they go, and what counts as a defect.

`tools/fuzz.py` runs it for long, `tests/test_fuzz_cases.py` for a moment in every test run.
"""
