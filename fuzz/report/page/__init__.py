"""The page of a campaign's report: template, style, script and plots."""
