"""Native libFuzzer harnesses, compiled from an arm's tree: for C files that patches change, and for a whole server."""
