"""Reduction of a finding's case to a smallest case that shows it."""
