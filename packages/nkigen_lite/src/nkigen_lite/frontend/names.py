"""What is said about names of NumPy that are not translated."""

from __future__ import annotations

from difflib import get_close_matches

_BY_VALUES = frozenset({"nonzero", "argwhere", "flatnonzero", "unique", "compress", "extract"})


def nearest(name: str) -> str:
    """What to write instead of np.`name`: the translated name that is most like it."""
    if name.rpartition(".")[2] in _BY_VALUES:
        return "the shape of its result depends on values: keep the shape with np.where"
    from nkigen_lite.frontend.functions import translated

    known = {n.rpartition(".")[2]: n for n in sorted(translated(), reverse=True)}
    found = get_close_matches(name.rpartition(".")[2], known, 1, 0.76)
    most_like = f"the nearest that is: np.{known[found[0]]}; " if found else ""
    return f"{most_like}the README of nkigen-lite lists them all"
