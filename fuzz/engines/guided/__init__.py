"""Guided engine: libFuzzer makes the choices of generators, steered by the edges that cases reach in a server."""
