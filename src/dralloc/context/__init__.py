"""A problem at one moment, for questions about single demands: what is in use by whom, what is offered, what fits.

`explain`, `whatif` and `stranded` stand on it. The searches do not need it: they take the problem as a whole.
"""
