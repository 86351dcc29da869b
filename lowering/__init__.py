"""Out of the IR: the C and CUDA emitters and the description of a compiled plan."""
