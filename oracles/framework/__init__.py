"""Machinery that several oracles share: pairs of arms, metamorphic relations, comparison, canaries."""
