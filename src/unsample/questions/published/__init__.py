"""`published`: full-catalogue metrics from the numbers that a paper prints."""
