"""Forms in which a finding is handed on, one file a form: adding one touches nothing else."""
