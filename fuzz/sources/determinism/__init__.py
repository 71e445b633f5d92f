"""Whether the data determine what a foreign statement returns, and repair where they do not."""
