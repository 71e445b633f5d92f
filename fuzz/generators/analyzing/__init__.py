"""Parts of the generator foreign_analyze."""
