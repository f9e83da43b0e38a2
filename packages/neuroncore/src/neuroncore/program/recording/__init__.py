"""Records the run of a kernel as a program."""
