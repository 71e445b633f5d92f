"""From a finding's case to the smallest one that still shows it."""
