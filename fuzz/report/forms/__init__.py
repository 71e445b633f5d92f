"""Forms of a finding for others, one file per form."""
