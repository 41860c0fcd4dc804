"""The tables and figures of Jin et al., AAAI 2021, as data: one file each, and the deviations."""
