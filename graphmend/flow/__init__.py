"""Abstract interpretation of traced functions: what each value is, before anything runs."""
