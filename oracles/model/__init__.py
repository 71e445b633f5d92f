"""Vocabulary of oracles and `fuzz`: case, mode, run, observation, verdict, finding, oracle, sample."""
