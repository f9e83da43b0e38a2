"""What all commands of the project share, made of argparse and the standard library."""
