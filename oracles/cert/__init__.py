"""The oracle `cert` and the restrictions that it compares."""
