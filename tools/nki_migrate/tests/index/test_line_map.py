"""Lines of the migrated text, and the lines of the original that they come from."""

from nki_migrate.index.line_map import LineMap

OLD = """\
for i in nl.affine_range(n):
    t = nl.load(
        x[i],
        dtype=nl.float32,
    )
"""
NEW = """\
s = nl.ndarray(
    (128, 8),
    dtype=nl.float32,
)
for i in nl.affine_range(n):
    t = nl.ndarray((128, 8), dtype=nl.float32)
"""


def test_a_loop_is_found_again_behind_a_call_with_the_same_arguments():
    assert LineMap(OLD, NEW).line(5) == 1
