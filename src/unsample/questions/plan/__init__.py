"""`plan`: which design an evaluation should have, before anything is scored."""
