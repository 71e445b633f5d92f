"""Judges of the arms' observations, and the vocabulary that they share with `fuzz` (`oracles.model`)."""
