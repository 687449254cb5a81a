"""The paper's models, mended with the command line and measured before and after."""
