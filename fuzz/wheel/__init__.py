"""The package `pgduel` of a wheel: the parts of the checkout in `tree`, so that users keep the name `fuzz`."""
