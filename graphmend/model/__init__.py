"""Names, functions and classes of the linted files, resolved to qualified names and never by spelling."""
