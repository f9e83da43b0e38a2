"""Arrays that stay in SBUF between the parts of a kernel."""

from nkigen_lite.codegen.residency.residents import keep_on_chip

__all__ = ["keep_on_chip"]
