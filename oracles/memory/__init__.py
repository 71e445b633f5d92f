"""The oracle `memory` and the batches of hash joins."""
