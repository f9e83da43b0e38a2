from nki import isa as _isa


def __getattr__(name):
    return getattr(_isa, name)
