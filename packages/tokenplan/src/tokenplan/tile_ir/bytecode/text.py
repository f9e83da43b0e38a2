"""A module as text, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokenplan.tile_ir.bytecode.module import Block, Module, Operation, Value


def text(module: Module) -> str:
    """One line per operation, its debug location behind it."""
    lines = [f"// Tile IR {module.version[0]}.{module.version[1]}"]
    for function in module.functions:
        parameters = ", ".join(f"{_name(v)}: {v.type}" for v in function.body.arguments)
        hints = f" hints={function.hints}" if function.hints else ""
        kind = "entry" if function.is_kernel else "function"
        lines += [f"{kind} {function.name}({parameters}){hints} {{"]
        lines += [f"  {line}" for line in _block(function.body)]
        lines += ["}"]
    return "\n".join(lines) + "\n"


def _block(block: Block) -> Iterator[str]:
    for operation in block.operations:
        yield _operation(operation) + (" {" if operation.regions else "")
        for number, region in enumerate(operation.regions):
            if number:
                yield "} else {"
            if region.arguments:
                yield f"  ^({', '.join(f'{_name(v)}: {v.type}' for v in region.arguments)}):"
            yield from (f"  {line}" for line in _block(region))
        if operation.regions:
            yield "}"


def _operation(operation: Operation) -> str:
    operands = [f"{name}={_names(values)}" for name, values in operation.operands.items() if values]
    attributes = [f"{name}={_value(value)}" for name, value in operation.attributes.items()]
    results = f"{', '.join(map(_name, operation.results))} = " if operation.results else ""
    types = f" : {', '.join(str(v.type) for v in operation.results)}" if operation.results else ""
    place = f"  // {operation.place.file}:{operation.place.line}" if operation.place else ""
    return f"{results}{operation.name}({', '.join([*operands, *attributes])}){types}{place}"


def _names(values: tuple[Value, ...]) -> str:
    return _name(values[0]) if len(values) == 1 else f"[{', '.join(map(_name, values))}]"


def _name(value: Value) -> str:
    return f"%{value.number}"


def _value(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
