"""The version, in one place; reading it from the installed metadata would cost a third of the start-up time."""

__version__ = "0.1.0"
