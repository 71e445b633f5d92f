"""What the generator of joins by equivalence classes is made of."""
