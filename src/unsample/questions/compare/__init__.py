"""`compare`: which model is truly better, and how certain that is."""
