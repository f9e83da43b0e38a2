"""Resources that instructions occupy: instruction streams, ports, bandwidth."""
