"""Settings of a run of the codemod."""
