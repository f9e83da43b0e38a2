"""The step 0.1 → 0.2: value-returning kernels become destination-passing ones."""

from nki_migrate.rewriting.functions.function import RewrittenFunction, plan_loops, rewrite_function
from nki_migrate.rewriting.plan.application import apply_plan

__all__ = ["RewrittenFunction", "apply_plan", "plan_loops", "rewrite_function"]
