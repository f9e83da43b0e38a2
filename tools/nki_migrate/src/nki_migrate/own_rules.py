"""Findings about the run itself, which no rule makes: suppress.py and untouched.py report them."""

from __future__ import annotations

OWN_RULES = {
    "NKI0001": "a comment suppresses what nothing here needs",
    "NKI0002": "a kernel is left as it is, as a comment asks",
    "NKI0003": "kernels of both dialects need one imported name",
    "NKI0004": "a kernel is left as it is: its migrated form would change again",
    "NKI0005": "names are unclear, and nothing of the file was migrated",
}
