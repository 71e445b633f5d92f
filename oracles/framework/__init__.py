"""What several oracles build on: pairs of arms, metamorphic relations, comparison, canaries."""
