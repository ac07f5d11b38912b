"""What asv measures of every commit: CONTRIBUTING.md, "Measure"."""
