"""The optimal mode: an exact CP-SAT model, solved tier by tier, with a proof or a bound.

`solve` answers a `dralloc.problem.Problem`; `build` gives the model itself, e.g. to export it. No type of OR-Tools
appears in what `solve` takes and returns.
"""

from dralloc.choices import Options
from dralloc.solution import Progress
from dralloc.solvers.cpsat.assemble import build
from dralloc.solvers.cpsat.budgets import within_caps
from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.run import solve

__all__ = ["Model", "Options", "Progress", "build", "solve", "within_caps"]
