"""The tensor library and the front doors for other frameworks."""
