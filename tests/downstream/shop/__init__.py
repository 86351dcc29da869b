"""shop: a dialect of its own that compiles through uopc."""
