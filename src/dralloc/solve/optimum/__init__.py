"""The optimal mode: an exact CP-SAT model, solved tier by tier, with a proof or a bound.

`solve` answers a `dralloc.problem.Problem`; `build` gives the model itself, e.g. to export it. No type of OR-Tools
appears in what `solve` takes and returns.
"""

from dralloc.objects.choices import Options
from dralloc.problem.solution import Progress
from dralloc.solve.optimum.component import build
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import within_caps
from dralloc.solve.optimum.run import solve

__all__ = ["Model", "Options", "Progress", "build", "solve", "within_caps"]
