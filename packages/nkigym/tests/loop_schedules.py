"""Hand-written schedules, from baseline kernels to near the bound of what binds."""

SOFTMAX = "rotate row slots=4 space=sbuf"

RMSNORM_MATMUL = """
hoist row dma_copy:1
hoist row column k dma_copy
hoist row column k
hoist row column
reorder column
widen k column
distribute row column before=tensor_copy
reorder row column
sink row column dma_copy
widen row column:1
rotate row k slots=4 space=psum
engine row column tensor_copy engine=scalar
pipeline row cuts=k,k:1 order=0,2,1
"""

GATED = """
hoist column k x
hoist column k
hoist column k:1 x
hoist column k:1
reuse k other=5
rotate k x slots=4 space=chip
split column factor=4
hoist column column1 k dma_copy
hoist column column1 k
hoist column column1:1 k:1 dma_copy
hoist column column1:1 k:1
reorder column column1
widen column k column1
widen column k
reorder column column1:0
widen column k column1
widen column k
rotate column column1 slots=2 space=chip
rotate column slots=2 space=sbuf
hoist part column k dma_copy
hoist part column k
hoist part column
reorder column:1
widen k:1 column
split k:1 factor=8
widen k:1 k1
rotate part column slots=2 space=chip
rotate part slots=2 space=sbuf
"""

ATTENTION = """
hoist batch row column x
hoist batch row column
hoist batch row column dma_copy
hoist batch row column nc_transpose
hoist batch row column tensor_copy
hoist batch row k:1 dma_copy
hoist batch row k:1
split batch row k factor=8
distribute batch row k k1 before=tensor_copy
widen batch row k k1:1
rotate batch row k slots=2 space=psum
direct batch row tensor_copy:1
hoist batch column x dma_copy
hoist batch column x
fuse batch column
widen batch column
widen batch k
rotate batch column x slots=4 space=psum
engine batch row column tensor_copy engine=scalar
swap batch row reciprocal
rotate batch row column slots=4 space=psum
hoist batch row dma_copy
widen batch row:0
pipeline batch row cuts=column,tensor_reduce,k order=1,2,0,3
rotate batch slots=2 space=sbuf
"""

MATMUL = """
hoist row column k dma_copy
hoist row column k:1 dma_copy
split row factor=2
split row row1 column factor=2
reorder row row1
reorder row
hoist column row row1 column1 k
hoist column row row1 k
hoist column row row1:1 column1 k
hoist column row row1:1 column1
reorder column row row1
widen column row k row1
reorder column row column1
widen column row k:1 column1
hoist column row k:1
distribute column row row1 column1 before=tensor_copy
distribute column row row1 before=column1:1
reorder column row row1 column1
reorder column row row1
sink column row row1 column1 dma_copy
widen column row row1 column1:1
rotate column row slots=2 space=chip
peel column row
unroll column row2
join column k
rotate column slots=2 space=sbuf
"""
