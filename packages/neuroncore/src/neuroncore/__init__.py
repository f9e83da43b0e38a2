"""The NeuronCore as a machine: memories, instructions, effects and costs."""
