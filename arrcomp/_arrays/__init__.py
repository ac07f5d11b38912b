"""Arrays of every framework: their devices, their memory, and the one driver that hands them to the core."""
