"""Benchmarks: the mails' tables as ratios of arms interleaved in one run, and comparisons of fuzzers and reducers."""
