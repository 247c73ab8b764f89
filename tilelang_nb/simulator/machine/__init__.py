"""The simulated device: memory, masks, strands, scheduling, checks."""
