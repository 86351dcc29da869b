"""IR to IR: one pass a file; pipelines.py names the pipelines."""
