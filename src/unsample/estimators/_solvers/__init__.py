"""Optimisation problems on the simplex, each solved for many histograms at once.

Every solver states its problem, and every solution carries a certificate for each histogram:
how it ended, the objective, a bound on how far from the optimum that is, and the iterations.
"""
