"""The functions and constants of nki.language, nki.isa and nki.typing of NKI 0.1."""

from nki_beta1.language.arithmetic import FUNCTIONS
from nki_beta1.language.constants import (
    BUFFERS,
    DTYPES,
    Limits,
    TileSize,
    number_info,
    unsupported_names,
)
from nki_beta1.language.gather import atomic_rmw, gather_flattened
from nki_beta1.language.isa import CONSTANTS, get_nc_version, isa_functions
from nki_beta1.language.loop_reduce import loop_reduce
from nki_beta1.language.nki_typing import (
    enable_stack_allocator,
    force_auto_alloc,
    mutable,
    mutable_tensor,
    no_reorder,
    scalar,
    skip_middle_end_transformations,
    tensor,
)
from nki_beta1.language.private_modules import NoSubmodules
from nki_beta1.language.random_numbers import dropout, rand, random_seed
from nki_beta1.language.reductions import REDUCTIONS, all_reduce, mean, rms_norm, softmax, var
from nki_beta1.language.transfers import (
    broadcast_to,
    copy,
    device_print,
    expand_dims,
    load,
    load_transpose2d,
    matmul,
    static_cast,
    store,
    transpose,
)

__all__ = [
    "BUFFERS", "CONSTANTS", "DTYPES", "FUNCTIONS", "REDUCTIONS", "Limits", "NoSubmodules",
    "TileSize", "all_reduce", "atomic_rmw", "broadcast_to", "copy", "device_print", "dropout",
    "enable_stack_allocator", "expand_dims", "force_auto_alloc", "gather_flattened",
    "get_nc_version", "isa_functions", "load", "load_transpose2d", "loop_reduce", "matmul",
    "mean", "mutable", "mutable_tensor", "no_reorder", "number_info", "rand", "random_seed",
    "rms_norm", "scalar", "skip_middle_end_transformations", "softmax", "static_cast", "store",
    "tensor", "transpose", "unsupported_names", "var",
]  # fmt: skip
