"""What psql makes of a script, as far as pgduel has to know."""
