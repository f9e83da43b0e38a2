"""The kernels of examples/tile_ir/kernels.py."""

from pathlib import Path
from runpy import run_path

_FILE = Path(__file__).parents[4] / "examples" / "tile_ir" / "kernels.py"
_FOUND = run_path(str(_FILE), run_name="tile_ir_kernels")
EXAMPLES, gemm = _FOUND["EXAMPLES"], _FOUND["gemm"]
