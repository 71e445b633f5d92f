"""Native libFuzzer harnesses for C files that patches change, compiled from an arm's tree without a server."""
