"""How linalg, tensor, arith and math become utensor."""
