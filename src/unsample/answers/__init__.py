"""Answers: `estimate`, `exact`, `evaluate`, `compare`, `plan`, `published`, and their results."""
