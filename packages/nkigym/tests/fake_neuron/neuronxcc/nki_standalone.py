"""A stand-in for the vendor's compiler; FAKE_NEURON names its fault."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

assert "nkipy.runtime" not in sys.modules, "compiler and runtime in one process"
NKI_IR_VERSION = SimpleNamespace(beta2="beta2")


def compile_nki_ir_kernel_to_neff(
    *, kernel_func, kernel_inputs_dict, kernel_outputs, platform_target, logical_nc_config,
    output_directory, version, additional_compiler_args,
):  # fmt: skip
    print("compiling", kernel_func.__name__, "for", platform_target)
    FAULTS.get(os.environ.get("FAKE_NEURON", ""), lambda: None)()
    if os.environ.get("FAKE_NEURON") == "compiler waits for another":
        wait_for_another(Path(output_directory).parents[1])
    if os.environ.get("FAKE_NEURON") != "no neff":
        (Path(output_directory) / "file.neff").write_text("neff")


def crash():
    os.abort()


def hang():
    Path(os.environ["FAKE_HANGS"]).touch()
    time.sleep(600)


def reject():
    print("NCC_EVRF066: not today", file=sys.stderr)
    raise RuntimeError("compilation failed")


def wait_for_another(artefacts):
    """Until a second compilation has begun, so that this one is hidden by it."""
    while len([*artefacts.rglob("kernel.py")]) < 2:
        time.sleep(0.01)
    time.sleep(1)


def fill_disk():
    raise OSError(28, "No space left on device")


FAULTS = {
    "compiler crashes": crash, "compiler hangs": hang, "compiler rejects": reject,
    "disk is full": fill_disk, "compiler is slow": lambda: time.sleep(1),
    "compiler changes the folder": lambda: os.chdir("/"),
}  # fmt: skip
