"""`estimate`: from sampled ranks to metrics with intervals. `exact`: from full ranks."""
