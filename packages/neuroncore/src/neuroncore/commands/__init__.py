"""The parts that all commands of the project share: argparse and the standard library alone."""
