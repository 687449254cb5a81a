"""A run under Dynamo against what was found: reading its log, joining the two, and making a run to read.

``observe`` is a program of its own, for the watched process; everything else imports no torch.
"""
