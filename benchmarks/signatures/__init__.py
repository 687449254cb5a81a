"""The tables of torch operations in ``graphmend/signatures``, against the installed torch."""
