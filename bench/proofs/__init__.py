"""What bench/trust.py proves, a module a section."""
