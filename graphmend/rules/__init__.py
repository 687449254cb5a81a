"""Rules: what is reported, which rewrite mends it, and what a person reads about it. The text of the rules is YAML."""
