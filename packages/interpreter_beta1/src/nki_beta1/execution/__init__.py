"""Instructions on tensors: signatures, legality, execution and the tensors of a core."""
