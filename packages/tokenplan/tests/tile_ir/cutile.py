"""Kernels written in cuTile, exported by its public ahead-of-time interface."""

import tempfile
from pathlib import Path

import cuda.tile as ct
from cuda.tile import compilation


@ct.kernel
def even_odd(a, trips: ct.Constant[int]):
    for k in range(trips):
        ct.store(a, (2 * k + 1, 0), ct.exp2(ct.load(a, (2 * k, 0), (64, 128))))


@ct.kernel
def two_stores(a, b, trips: ct.Constant[int]):
    for k in range(trips):
        x = ct.load(a, (k, 0), (64, 128))
        ct.store(b, (2 * k, 0), ct.exp2(x))
        ct.store(b, (2 * k + 1, 0), x * 2.0)


@ct.kernel
def disjoint_store(a, b, trips: ct.Constant[int]):
    for k in range(trips):
        ct.store(b, (2 * k + 1, 0), ct.exp2(ct.load(a, (k, 0), (64, 128))))


@ct.kernel
def recurrence(a, trips: ct.Constant[int]):
    for k in range(trips):
        ct.store(a, (k + 1, 0), ct.exp2(ct.load(a, (k, 0), (64, 128))))


KERNELS = {
    "even_odd": (even_odd, 1),
    "two_stores": (two_stores, 2),
    "disjoint_store": (disjoint_store, 2),
    "recurrence": (recurrence, 1),
}


def exported(name: str, trips: int = 64, alias_groups: tuple[str, ...] = ()) -> bytes:
    """The bytecode of a kernel on arrays of unknown size, which alias in groups alone."""
    kernel, arrays = KERNELS[name]
    constraint = compilation.ArrayConstraint(
        ct.float32, 2, index_dtype=ct.int32, stride_lower_bound_incl=0,
        alias_groups=[*alias_groups], may_alias_internally=False, stride_constant=[None, 1],
        stride_divisible_by=[16, 1], base_addr_divisible_by=16,
    )  # fmt: skip
    parameters = [*[constraint] * arrays, compilation.ConstantConstraint(trips)]
    convention = compilation.CallingConvention.cutile_python_v1()
    signature = compilation.KernelSignature(parameters, convention, symbol=name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.tileirbc"
        compilation.export_kernel(
            kernel, [signature], str(path), gpu_code="sm_90", output_format="tileir_bytecode",
            bytecode_version="13.3",
        )  # fmt: skip
        return path.read_bytes()
