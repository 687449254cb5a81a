"""What the tables of signatures say, against the installed torch."""
