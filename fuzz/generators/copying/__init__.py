"""Parts of the `copy_batches` workload: tables, batches of rows in COPY's three formats, and what surrounds a COPY."""
