"""Launches compiled Tile IR kernels on an NVIDIA device: values against NumPy, and time.

    python benchmarks/tile_ir_device.py [--runs 200]

Uses the CUDA driver library by ctypes. Without a device or the compiler it reports this and stops.
Each kernel is launched with the tokens that it needs and with a total order, 20 times to warm up,
then --runs times; microseconds are the 10th, 50th and 90th percentile of the device's own events.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from runpy import run_path

import numpy as np

from tokenplan.tile_ir import bytecode, compiler, emit, orders_of, total_orders

KERNELS = Path(__file__).parents[1] / "examples" / "tile_ir" / "kernels.py"
WARM_UP, LEEWAY = 20, 1e-2
MAJOR, MINOR = 75, 76
"""Attributes of a device: its compute capability."""


class Driver:
    """The first device, through the CUDA driver interface."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.target = f"sm_{self.attribute(MAJOR, device)}{self.attribute(MINOR, device)}"

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function of the driver; raises RuntimeError for an error code."""
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with CUDA error {code}")

    def attribute(self, number: int, device: ctypes.c_int) -> int:
        """One attribute of the device."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def function(self, cubin: bytes, name: str) -> ctypes.c_void_p:
        """The kernel of a binary."""
        module, found = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found

    def upload(self, array: np.ndarray) -> ctypes.c_uint64:
        """A copy of the array on the device."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        self.call("cuMemcpyHtoD_v2", address, array.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_size_t(array.nbytes))  # fmt: skip
        return address

    def download(self, address: ctypes.c_uint64, array: np.ndarray) -> None:
        """Copies from the device into the array."""
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), address,
                  ctypes.c_size_t(array.nbytes))  # fmt: skip

    def launch(
        self, function: ctypes.c_void_p, grid: Sequence[int], addresses: Sequence[ctypes.c_uint64]
    ) -> None:
        """One launch; Tile IR binaries state their own block size, so that it is 1 here."""
        pointers = [ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in addresses]
        arguments = (ctypes.c_void_p * len(pointers))(*pointers)
        self.call("cuLaunchKernel", function, *grid, 1, 1, 1, 0, None, arguments, None)

    def microseconds(
        self, function: ctypes.c_void_p, grid: Sequence[int], addresses: Sequence[ctypes.c_uint64],
        runs: int,
    ) -> np.ndarray:  # fmt: skip
        """The time of each launch between two events."""
        events = [ctypes.c_void_p() for _ in range(2)]
        for event in events:
            self.call("cuEventCreate", ctypes.byref(event), 0)
        found, spent = [], ctypes.c_float()
        for run in range(WARM_UP + runs):
            self.call("cuEventRecord", events[0], None)
            self.launch(function, grid, addresses)
            self.call("cuEventRecord", events[1], None)
            self.call("cuEventSynchronize", events[1])
            self.call("cuEventElapsedTime_v2", ctypes.byref(spent), *events)
            if run >= WARM_UP:
                found.append(spent.value * 1e3)
        return np.percentile(found, [10, 50, 90])


def driver() -> Driver | str:
    """The device, or why there is none."""
    absent = compiler.missing("tileiras")
    if absent:
        return absent
    try:
        return Driver(ctypes.CDLL("libcuda.so.1"))
    except (OSError, RuntimeError) as wrong:
        return f"no NVIDIA device: {wrong}"


def main() -> None:
    """Prints a line per kernel and order."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    device = driver()
    if isinstance(device, str):
        sys.exit(f"{device}; nothing was measured")
    for name, example in run_path(str(KERNELS), run_name="tile_ir_kernels")["EXAMPLES"].items():
        found = orders_of(example.make().described(), target=device.target)
        grid = [size for _, size in found.described.grid]
        chain = total_orders(found.kernel, len(grid))
        rng = np.random.default_rng(0)
        arrays = {a.name: rng.standard_normal(a.shape).astype(np.float32)
                  for a in found.described.arrays}  # fmt: skip
        expected = example.reference(**{n: a.astype(np.float64) for n, a in arrays.items()})
        for order, kept in (("needed", found.kept), ("total", chain)):
            data = bytecode.write(emit(found.described, found.kernel, kept, target=device.target))
            cubin = compiler.compile_bytecode(data, device.target).cubin
            function = device.function(cubin, found.described.name)
            addresses = [device.upload(array) for array in arrays.values()]
            sizes = (*grid, 1, 1, 1)[:3]
            device.launch(function, sizes, addresses)
            worst = 0.0
            for (key, array), address in zip(arrays.items(), addresses, strict=True):
                result = np.empty_like(array)
                device.download(address, result)
                if key in expected:
                    worst = max(worst, float(np.abs(result - expected[key]).max()))
            times = device.microseconds(function, sizes, addresses, given.runs)
            state = "right" if worst <= LEEWAY else "WRONG"
            print(f"{device.target} {name} {order}: {state} (error {worst:.1e}), "
                  f"{times[0]:.1f} / {times[1]:.1f} / {times[2]:.1f} us")  # fmt: skip


if __name__ == "__main__":
    main()
