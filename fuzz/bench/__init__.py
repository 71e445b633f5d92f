"""The mails' tables, as ratios of arms interleaved in one run."""
