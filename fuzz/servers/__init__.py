"""From a base and a series of patches to running servers: source, build, cluster, arm."""
