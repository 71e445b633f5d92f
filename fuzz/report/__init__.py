"""What a person sees: the terminal, and files to pass on."""
