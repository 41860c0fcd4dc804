"""How to look at items: designs, and what they need to run on a scorer."""
