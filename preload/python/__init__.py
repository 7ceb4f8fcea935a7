"""vramtrace's own code in the traced program's interpreter. Private."""
