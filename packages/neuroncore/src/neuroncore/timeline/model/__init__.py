"""Constants, clocks and lanes of the time model."""
