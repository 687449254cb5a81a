"""How much of what breaks the graph `graphmend lint` finds, and how much of what it prints is true."""
