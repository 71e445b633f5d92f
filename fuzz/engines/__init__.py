"""Engines: sources of randomness for generators (seeds, Hypothesis), external fuzzers, and libFuzzer harnesses."""
