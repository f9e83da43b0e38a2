"""Results of an estimate: bars, stalls, critical path, occupancy."""
