"""Who chooses the randomness: seeds, Hypothesis, libFuzzer."""
