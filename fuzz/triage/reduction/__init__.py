"""Reduction: from a finding's case to the smallest that shows it."""
