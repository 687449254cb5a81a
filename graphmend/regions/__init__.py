"""Compiled regions: where they start, what cuts them, and the call chain that brings a function into one."""
