"""The programs that steps reach from a root, each step certified."""

from nkigym.space.exhaust import Found, exhaust
from nkigym.space.part import Step
from nkigym.space.root import space_of
from nkigym.space.space import Node, Space
from nkigym.space.values import CertificateError

__all__ = ["CertificateError", "Found", "Node", "Space", "Step", "exhaust", "space_of"]
