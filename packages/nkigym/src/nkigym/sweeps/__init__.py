"""Many tunings as one run: functions, shapes, targets and seeds on any executor, into one store."""

from nkigym.sweeps.sweep import PRELOAD, Row, Sweep, run_sweep
from nkigym.sweeps.tasks import SweepFileError, SweepTask, read_sweep

__all__ = [
    "PRELOAD",
    "Row",
    "Sweep",
    "SweepFileError",
    "SweepTask",
    "read_sweep",
    "run_sweep",
]
