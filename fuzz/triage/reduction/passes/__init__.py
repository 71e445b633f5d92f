"""Passes of the reduction."""
