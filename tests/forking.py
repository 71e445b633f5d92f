"""Processes that are forked from one with all imports: a new process would spend a second of CPU time on these.

Each process of pytest has one such server. It starts with the first fork, and ends with pytest's process.
"""

import multiprocessing

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["tests.preloading"])
