"""Which of all possible orders a kernel needs, pair by pair."""
