"""NumPy's functions and methods on traced arrays: each module registers what it implements."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from nkigen_lite.frontend.functions.ordering import topk
from nkigen_lite.frontend.functions.scan import scan
from nkigen_lite.frontend.functions.special import erf, gelu, rsqrt, sigmoid, silu

__all__ = ["erf", "gelu", "rsqrt", "scan", "sigmoid", "silu", "topk"]

for _module in iter_modules([str(Path(__file__).parent)]):
    import_module(f"{__name__}.{_module.name}")
