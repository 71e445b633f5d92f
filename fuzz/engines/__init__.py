"""Who chooses the randomness: seeds, Hypothesis; and libFuzzer for native harnesses."""
