"""Parts of the generator `outer_joins`: hash joins in several batches, and whatever may surround them."""
