"""Facts about a kernel's values: symbolic numbers, dtypes, abstract values."""
