"""How each function of the math dialect is written in arith operations, one family a module."""
