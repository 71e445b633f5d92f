"""The generator `copy_batches` and its parts."""
