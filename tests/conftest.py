"""No test has a deadline: how fast one is depends on the machine, and on what else it does."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
