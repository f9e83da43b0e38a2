"""The step 0.1 → 0.2: value-returning kernels become destination-passing ones."""

from nki_migrate.rewriting.functions.function import RewrittenFunction, plan_loops, rewrite_function

__all__ = ["RewrittenFunction", "plan_loops", "rewrite_function"]
