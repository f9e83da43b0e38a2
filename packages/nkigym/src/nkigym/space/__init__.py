"""The programs that steps reach from a root, each step certified."""

from nkigym.space.batch import Batch, Entry, descend, replay, share_all
from nkigym.space.canonical import canonical_count
from nkigym.space.exhaust import Found, exhaust
from nkigym.space.kinds import KNOWN, TRANSFORMS
from nkigym.space.part import Step
from nkigym.space.root import space_of
from nkigym.space.space import Node, Space
from nkigym.space.values import CertificateError
from nkigym.space.walk import Walk, Walked, walk

__all__ = [
    "KNOWN",
    "TRANSFORMS",
    "Batch",
    "CertificateError",
    "Entry",
    "Found",
    "Node",
    "Space",
    "Step",
    "Walk",
    "Walked",
    "canonical_count",
    "descend",
    "exhaust",
    "replay",
    "share_all",
    "space_of",
    "walk",
]
