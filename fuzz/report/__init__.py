"""Output for people: the terminal, and files to hand on."""
