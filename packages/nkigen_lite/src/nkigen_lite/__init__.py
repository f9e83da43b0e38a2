"""NumPy programs as tensor graphs for the NeuronCore."""

from nkigen_lite.spec import Spec, as_spec, narrow

__all__ = ["Spec", "as_spec", "narrow"]
