"""From a traced function to a checked kernel, and the text that explains it."""
