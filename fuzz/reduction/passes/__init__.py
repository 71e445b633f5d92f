"""Passes of reduction: each a plain function of a problem, in its own file."""
