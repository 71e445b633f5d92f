"""The vocabulary: case, mode, observation, finding, oracle, samples."""
