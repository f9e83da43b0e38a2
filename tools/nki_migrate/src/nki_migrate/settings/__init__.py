"""What a run of the codemod is requested to do."""
