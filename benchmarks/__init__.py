"""Programs that measure graphmend; each prints a table and says what it did not measure."""
