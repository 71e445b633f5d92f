"""Reading and replaying SQL scripts, for the sources `regress` and `user_sql`."""
