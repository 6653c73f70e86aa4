"""A problem at one moment, for questions about single demands: usage with holders, offers, and what fits.

`explain`, `whatif` and `stranded` stand on it. The searches do not need it: they take the problem as a whole.
"""

from dralloc.ask.context.context import Context, Lift, Screening
from dralloc.ask.context.exclusions import Exclusions
from dralloc.ask.context.offers import Offers, TableOffers

__all__ = [
    "Context",
    "Exclusions",
    "Lift",
    "Offers",
    "Screening",
    "TableOffers",
]
