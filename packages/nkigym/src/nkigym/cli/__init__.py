"""`nkigym`: search over schedules, from the command line."""

from neuroncore.commands.interruption import entry_point

main = entry_point("nkigym", "nkigym.cli.commands")

__all__ = ["main"]
