"""`evaluate`: the metrics of a scorer, at part of the cost of a full ranking."""
