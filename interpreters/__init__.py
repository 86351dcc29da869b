"""Reference semantics of every level, on xDSL's interpreter framework and numpy."""
