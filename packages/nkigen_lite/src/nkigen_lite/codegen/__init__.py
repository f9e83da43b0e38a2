"""Kernel programs of fusion groups: buffers, loop nests, products of matrices."""

from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.kernel import generate, returned
from nkigen_lite.codegen.loop_nests.row_replication import Replicas
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles
from nkigen_lite.codegen.movement.buffer_assignment import Arrays

__all__ = ["Arrays", "Replicas", "Tile", "Tiles", "Writer", "generate", "returned"]
