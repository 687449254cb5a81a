"""Source text: decoding, positions and edits. Knows nothing about Python's meaning."""
