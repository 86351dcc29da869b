"""Command-line tools: uopc-opt and uopc-run."""
