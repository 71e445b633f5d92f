"""Whether a statement that we did not write may be compared, and what has to change in it for that."""
