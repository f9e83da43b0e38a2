"""Files of the user: found, read, written."""
