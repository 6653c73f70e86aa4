"""A problem at one moment, for questions about single demands: what is in use by whom, what is offered, what fits.

`explain`, `whatif` and `stranded` stand on it. The searches do not need it: they take the problem as a whole.
"""

from dralloc.context.context import Context
from dralloc.context.lift import Lift
from dralloc.context.node_rules import Exclusions
from dralloc.context.offers import Offers, TableOffers
from dralloc.context.screening import Screening

__all__ = ["Context", "Exclusions", "Lift", "Offers", "Screening", "TableOffers"]
