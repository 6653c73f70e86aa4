"""A problem at one moment, for questions about single demands: what is in use by whom, what is offered, what fits.

`explain`, `whatif` and `stranded` stand on it. The searches do not need it: they take the problem as a whole.
"""

from dralloc.ask.context.context import Context
from dralloc.ask.context.lift import Lift
from dralloc.ask.context.node_rules import Exclusions
from dralloc.ask.context.offers import Offers, TableOffers
from dralloc.ask.context.screening import Screening

__all__ = ["Context", "Exclusions", "Lift", "Offers", "Screening", "TableOffers"]
