"""Direction: more CPU time for workloads that enter the functions that the arms' patches change."""
