"""Judges of what arms did, and the vocabulary that they share with `fuzz`: case, observation, finding, oracle."""
