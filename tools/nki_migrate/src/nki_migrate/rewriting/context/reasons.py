"""Why a statement is rewritten or left, in the engine's own terms: each reason is of one rule.

A rule takes a reason under its id by `reasons` in its data file.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum

from nki_migrate.facts.values import Value


class Reason(Enum):
    """A reason of the engine."""

    LOCAL_ANNOTATION = "local_annotation"  # a local tile is annotated
    OUTPUT_PARAMETER = "output_parameter"  # a kernel writes to a parameter
    LAUNCH_GRID = "launch_grid"  # a kernel is launched over a grid
    PROGRAM_ID = "program_id"  # a kernel reads its place in the grid
    PARTITION_MARK = "partition_mark"  # a size is marked by `nl.par_dim`
    BLOCK_DIMENSIONS = "block_dimensions"  # a tensor has block dimensions
    HBM_PARTITION_MARK = "hbm_partition_mark"  # a tensor in HBM has a marked size
    FILL = "fill"  # a tensor is created with a value
    PSUM_ZEROS = "psum_zeros"  # a PSUM accumulator is created with zeros
    BUFFER = "buffer"  # a buffer is left to the default, or unknown
    OUTPUT_BUFFER = "output_buffer"  # a returned tensor is in private HBM
    SBUF_RING = "sbuf_ring"  # `sbuf.mod_alloc` places a tensor
    PSUM_RING = "psum_ring"  # `psum.mod_alloc` places a tensor
    ALLOCATION_FUNCTION = "allocation_function"  # `alloc(function)` places a tensor
    DIRECT_ALLOCATION = "direct_allocation"  # a tensor has an address of its own
    BUFFER_STRING = "buffer_string"  # a buffer is a string
    NUMPY_DTYPE = "numpy_dtype"  # a dtype is NumPy's
    FLOAT_LIMIT = "float_limit"  # `nl.fp32.min` is a literal
    ONE_DIMENSIONAL_TILE = "one_dimensional_tile"  # a tile has one dimension
    INDEX_TENSOR = "index_tensor"  # an index tensor is a slice
    OFFSET_INDEX = "offset_index"  # an index tensor has an offset
    SCALED_INDEX = "scaled_index"  # an index tensor has a step
    FOLDED_AXES = "folded_axes"  # two index axes address one dimension
    INDEX_GRID = "index_grid"  # `nl.mgrid` makes index tensors
    PERMUTED_AXES = "permuted_axes"  # index axes are in another order
    REPEATED_AXIS = "repeated_axis"  # an index axis addresses two dimensions
    UNKNOWN_RANK = "unknown_rank"  # the rank or a size of a tensor is unknown
    NESTED_SUBSCRIPT = "nested_subscript"  # a subscript has a subscript
    TILE_ASSIGNMENT = "tile_assignment"  # a tile is assigned to a subscript
    NUMBER_ASSIGNMENT = "number_assignment"  # a number is assigned to a subscript
    FREE_BROADCAST = "free_broadcast"  # a tile is broadcast along free axes
    PARTITION_BROADCAST = "partition_broadcast"  # a row is broadcast over partitions
    RECTANGULAR_MASK = "rectangular_mask"  # a mask is a rectangle
    PREDICATE_MASK = "predicate_mask"  # a mask is a predicate on numbers
    PREDICATE_TILE = "predicate_tile"  # a mask over several axes selects from a result
    AFFINE_SELECT = "affine_select"  # a predicate of index tensors does not fit a tile
    OTHER_MASK = "other_mask"  # a mask is something else
    NO_MASK = "no_mask"  # `mask=None`
    REDUNDANT_MASK = "redundant_mask"  # a bound of a mask always holds
    PRODUCT_MASK = "product_mask"  # a matrix product or transpose has a mask
    RETURNED_VALUE = "returned_value"  # an instruction returns its result
    ASSIGNED_CALL = "assigned_call"  # the result of an instruction is assigned to a subscript
    RESULT_SHAPE = "result_shape"  # the shape of an instruction's result is unknown
    PSUM_ACCUMULATION = "psum_accumulation"  # a product is added to a tile in PSUM
    ASSIGNED_PRODUCT = "assigned_product"  # a product replaces the contents of a tile
    SBUF_ACCUMULATION = "sbuf_accumulation"  # a product is added to a tile in SBUF
    NESTED_CALL = "nested_call"  # a call is an operand
    COMPOUND_TARGET = "compound_target"  # one assignment has several targets
    NUMPY_OPERATOR = "numpy_operator"  # an operator is a NumPy function
    RESULT_DTYPE = "result_dtype"  # the dtype of a result is an argument, or unknown
    TENSOR_REDUCE = "tensor_reduce"  # `nisa.tensor_reduce` returns its result
    TRANSPOSE = "transpose"  # a tile is transposed into PSUM
    TILE_ARITHMETIC = "tile_arithmetic"  # an operation has two tiles
    COLUMN_OPERAND = "column_operand"  # an operand is a (P, 1) tile
    ROW_OPERAND = "row_operand"  # an operand is a (1, F) tile
    TILE_OPERATOR = "tile_operator"  # a Python operator has a tile as operand
    AUGMENTED_ASSIGNMENT = "augmented_assignment"  # an augmented assignment changes a tile
    ACTIVATION = "activation"  # a function of one tile is an activation
    REDUCTION = "reduction"  # a tile is reduced along free axes
    DTYPE_ARGUMENT = "dtype_argument"  # a function of tiles has `dtype=`
    PYTHON_STATE = "python_state"  # Python code runs at another time than in 0.1
    FORMATTED_STRING = "formatted_string"  # a string is formatted
    DYNAMIC_INDEX = "dynamic_index"  # an index is a number of the device
    GATHER = "gather"  # a tile selects rows
    OUT_OF_BOUNDS = "out_of_bounds"  # rows that are out of bounds are skipped
    INDEX_COLUMN = "index_column"  # the selected rows are a column of a tile
    OLD_NAMESPACE = "old_namespace"  # a name of `neuronxcc` is left
    LATE_OLD_NAMESPACE = "late_old_namespace"  # a kernel of a later version has such a name
    DEVICE_LOOP = "device_loop"  # a loop bound is computed on the device


Cause = Reason | str  # a reason, or the id of the rule whose own code reports


class Cannot(Exception):  # noqa: N818 - control flow, not an error of the user
    """A construct that is not supported: the statement stays and gets a TODO."""

    def __init__(self, cause: Cause, message: str, node: ast.AST | None = None) -> None:
        super().__init__(message)
        self.cause, self.message, self.node = cause, message, node


class Unproved(Cannot):
    """An edit that rests on an assumption, without `--unsafe-fixes`."""

    def __init__(self, cause: Cause, message: str, node: ast.AST, assumption: str) -> None:
        super().__init__(cause, message, node)
        self.assumption = assumption


class Deselected(Exception):  # noqa: N818 - control flow
    """The statement needs a rule that the request left out: it stays, without a finding."""


@dataclass(frozen=True, slots=True)
class Unsupported(Value):
    """An index or a mask that has no counterpart: `text` describes it."""

    text: str
    reason: Reason
