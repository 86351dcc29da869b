"""How kernelize cuts a graph: what it takes, where it cuts, and the kernels' bodies."""
