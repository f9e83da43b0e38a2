"""What an estimate reports: bars, stalls, critical path, occupancy."""
