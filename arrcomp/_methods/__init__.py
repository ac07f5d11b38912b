"""Mathematics that no framework owns: projections, bit planning, seeds, shards."""
