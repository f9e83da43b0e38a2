"""The operations of the subset: one line of a table each, in the order in which they are stored.

The numbers come from the public cuda_tile dialect, which declares them frozen. Columns:

- results: a number of types, or n where their number is stored;
- flags: bits of one number: an attribute that is true, or an optional attribute or operand that is
  present; attributes; operands, `?x` optional and `x*` several. `#` before the operands: their
  total number is stored once, before all of them. `@3`: from version 13.3 on;
- regions: how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAGIC = b"\x7fTileIR\x00"
MINORS = (1, 2, 3, 4)
"""Versions 13.x that are written and read."""

_TABLE = """
absf 00 1 - - source
absi 01 1 - - source
addf 02 1 ftz rounding lhs,rhs
addi 03 1 - overflow lhs,rhs
andi 04 1 - - lhs,rhs
assume 06 1 - predicate value
atomic_cas_tko 07 2 mask,token order,scope pointers,compare,value,?mask,?token
atomic_rmw_tko 08 2 mask,token order,scope,mode pointers,value,?mask,?token
bitcast 09 1 - - source
break 0A n - - #values*
broadcast 0B 1 - - source
cat 0C 1 - dim lhs,rhs
ceil 0D 1 - - source
cmpf 0E 1 - comparison,ordering lhs,rhs
cmpi 0F 1 - comparison,signedness lhs,rhs
constant 10 1 - value -
continue 11 n - - #values*
cos 12 1 - - source
divf 14 1 ftz rounding lhs,rhs
divi 15 1 - signedness,rounding lhs,rhs
exp 17 1 - rounding@3 source
exp2 18 1 ftz - source
exti 25 1 - signedness source
extract 26 n - - #source,indices*
floor 27 1 - - source
fma 28 1 ftz rounding lhs,rhs,acc
for 29 n unsigned@2 - #lower,upper,step,inits* 1
ftof 2A 1 - rounding source
ftoi 2B 1 saturating@4 signedness,rounding source
get_index_space_shape 2D n - - source
get_num_tile_blocks 2E 3 - - -
get_tensor_shape 2F n - - source
get_tile_block_id 30 3 - - -
if 32 n - - condition 2
int_to_ptr 33 1 - - source
iota 3A 1 - - -
itof 3B 1 - signedness,rounding source
join_tokens 3C n - - #tokens*
load_ptr_tko 3D 2 scope,hints,mask,padding,token order,scope?,hints? source,?mask,?padding,?token
load_view_tko 3E n scope,hints,token order,scope?,hints?,inbounds@4 view,index*,?token
log 3F 1 - - source
log2 40 1 - - source
loop 41 n - - #inits* 1
make_partition_view 42 1 - - tensor_view
make_tensor_view 43 n - - base,shape*,strides*
make_token 44 1 - - -
maxf 45 1 propagate_nan,ftz - lhs,rhs
maxi 46 1 - signedness lhs,rhs
minf 47 1 propagate_nan,ftz - lhs,rhs
mini 48 1 - signedness lhs,rhs
mmaf 49 1 fast_acc@3 - lhs,rhs,acc
mmai 4A 1 - lhs_signedness,rhs_signedness lhs,rhs,acc
mulf 4C 1 ftz rounding lhs,rhs
mulhii 4D 1 - - lhs,rhs
muli 4E 1 - overflow lhs,rhs
negf 4F 1 - - source
negi 50 1 - overflow@2 source
offset 51 1 - - pointers,offsets
ori 52 1 - - lhs,rhs
permute 53 1 - permutation source
pow 54 1 - - source,exponent
ptr_to_int 56 1 - - source
ptr_to_ptr 57 1 - - source
reduce 58 n - dim,identities #sources* 1
remf 59 1 - - lhs,rhs
remi 5A 1 - signedness lhs,rhs
reshape 5B 1 - - source
return 5C n - - #values*
rsqrt 5D 1 ftz - source
scan 5E n - dim,reverse,identities #sources* 1
select 5F 1 - - condition,if_true,if_false
shli 60 1 - overflow lhs,rhs
shri 61 1 - signedness lhs,rhs
sin 62 1 - - source
sqrt 64 1 ftz rounding source
store_ptr_tko 65 1 scope,hints,mask,token order,scope?,hints? pointers,value,?mask,?token
store_view_tko 66 n scope,hints,token order,scope?,hints?,inbounds@4 tile,view,index*,?token
subf 67 1 ftz rounding lhs,rhs
subi 68 1 - overflow lhs,rhs
tanh 6A 1 - rounding@2 source
trunci 6B 1 - overflow source
xori 6C 1 - - lhs,rhs
yield 6D n - - #values*
make_gather_scatter_view 73 1 - - tensor_view - 3
make_strided_view 74 1 - - tensor_view - 3
"""

UNSUPPORTED = {
    0x05: "assert", 0x13: "cosh", 0x16: "entry", 0x2C: "get_global", 0x31: "global",
    0x4B: "module", 0x55: "print_tko", 0x63: "sinh", 0x69: "tan", 0x6E: "atan2", 0x6F: "pack",
    0x70: "unpack", 0x71: "alloca", 0x72: "mmaf_scaled", 0x75: "atomic_red_view_tko",
    0x76: "insert", 0x77: "gdc_launch_dependents_tko", 0x78: "gdc_wait_tko",
    0x7A: "memory_fence_alias_tko", 0x7B: "multimem_load_reduce_view_tko",
    0x7C: "multimem_reduce_view_tko", 0x7D: "multimem_store_view_tko",
}  # fmt: skip
"""Operations that exist and are not in the subset."""

ENUMS = {
    "rounding": ("nearest_even", "zero", "negative_inf", "positive_inf", "approx", "full",
                 "nearest_int_to_zero", "nearest_away"),
    "overflow": ("none", "nsw", "nuw", "nw"),
    "order": ("weak", "relaxed", "acquire", "release", "acq_rel"),
    "scope": ("block", "device", "system"),
    "comparison": ("eq", "ne", "lt", "le", "gt", "ge"),
    "ordering": ("unordered", "ordered"),
    "signedness": ("unsigned", "signed"),
    "mode": ("and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg"),
}  # fmt: skip
"""Attributes of one byte, by their values in order."""
ENUMS |= dict.fromkeys(("lhs_signedness", "rhs_signedness"), ENUMS["signedness"])

DEFAULTS = {"exp": {"rounding": "full"}, "tanh": {"rounding": "full"}, "negi": {"overflow": "none"}}
"""Values of attributes in versions that do not store them."""


@dataclass(frozen=True, slots=True)
class Field:
    """A flag, attribute or operand of an operation."""

    name: str
    since: int = 1
    is_optional: bool = False
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One line of the table."""

    name: str
    opcode: int
    results: int | None
    """None: their number is stored."""
    flags: tuple[Field, ...]
    attributes: tuple[Field, ...]
    operands: tuple[Field, ...]
    is_counted: bool
    """Whether the total number of operands is stored."""
    regions: int
    since: int


def _field(text: str) -> Field:
    name, _, since = text.partition("@")
    return Field(name.strip("?*"), int(since or 1), "?" in name, "*" in name)


def _fields(text: str) -> tuple[Field, ...]:
    return () if text == "-" else tuple(map(_field, text.strip("#").split(",")))


def _record(line: str) -> OperationRecord:
    name, code, results, flags, attributes, operands, *rest = line.split()
    regions, since = (*rest, *("-", "1")[len(rest) :])
    return OperationRecord(
        name,
        int(code, 16),
        None if results == "n" else int(results),
        _fields(flags),
        _fields(attributes),
        _fields(operands),
        operands.startswith("#"),
        0 if regions == "-" else int(regions),
        int(since),
    )


RECORDS = {record.name: record for record in map(_record, _TABLE.strip().splitlines())}
BY_OPCODE = {record.opcode: record for record in RECORDS.values()}


def stored(fields: Iterable[Field], minor: int) -> Iterator[Field]:
    """The fields that this version stores."""
    return (field for field in fields if field.since <= minor)
