"""Compile, cache, load and run emitted code. Knows what lowering emits, not the IR."""
