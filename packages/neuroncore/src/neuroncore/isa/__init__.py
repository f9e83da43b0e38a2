"""The functions of `nki.isa`, made of a record and the signature of a version, and their page."""
