"""Designs and their runs."""
