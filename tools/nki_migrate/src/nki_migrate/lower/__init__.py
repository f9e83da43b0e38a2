"""The step 0.1 → 0.2: value-returning kernels become destination-passing ones."""

from nki_migrate.lower.function import Lowered, lower_function, plan_loops
from nki_migrate.lower.plan import apply_plan

__all__ = ["Lowered", "apply_plan", "lower_function", "plan_loops"]
