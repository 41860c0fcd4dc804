"""Data files: ranks by data set, and their provenance."""
