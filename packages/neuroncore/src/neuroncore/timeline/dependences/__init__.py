"""Which instruction waits for which, from the bytes that they access."""
