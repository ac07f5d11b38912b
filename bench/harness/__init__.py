"""What all benchmarks share: timing, conditions, tables, figures in one file, pages."""
