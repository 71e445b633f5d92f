"""Triage of findings: confirmation, reduction, blame, deduplication, and reproducers."""
