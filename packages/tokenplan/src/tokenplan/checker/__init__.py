"""The independent checker of plan files: nothing but the file, plain loops and NumPy."""

from tokenplan.checker.command import add_options, main, run
from tokenplan.checker.concrete_sizes import Checked, checked_at_sizes
from tokenplan.checker.errors import ExecutionError, PlanFileError, TooBigError
from tokenplan.checker.findings import Finding
from tokenplan.checker.plan_check import CheckOptions, Report, check_plan
from tokenplan.checker.reading import read_plan_file
from tokenplan.checker.tile_accesses import TileAccess
from tokenplan.checker.tile_blocks import Execution

__all__ = [
    "CheckOptions",
    "Checked",
    "Execution",
    "ExecutionError",
    "Finding",
    "PlanFileError",
    "Report",
    "TileAccess",
    "TooBigError",
    "add_options",
    "check_plan",
    "checked_at_sizes",
    "main",
    "read_plan_file",
    "run",
]
