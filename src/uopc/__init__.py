"""uopc: a compiler for tensor programs on xDSL."""
