"""The oracle `statistics` and its sample tests."""
