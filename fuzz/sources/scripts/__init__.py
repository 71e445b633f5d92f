"""Reading and replaying of SQL scripts, for the sources `regress` and `user_sql`."""
