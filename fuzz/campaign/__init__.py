"""Cases run until a time, a count or a stop; stored, resumable."""
