"""The token graph for people: as text, and as a picture."""

from tokenplan.report.dot import dot
from tokenplan.report.text import explained, orders

__all__ = ["dot", "explained", "orders"]
