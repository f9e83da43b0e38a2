"""A core at run time: its state, launches of kernels, watchers, backends."""
