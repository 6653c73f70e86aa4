"""What of the API is modelled: every field that can change a placement, and what each mode makes of it.

`TABLE` has a row for each field of the objects that are read. From it come the notices, what ``--strict`` refuses, and
the page of the documentation; a test holds it against the types of the API.
"""

from dralloc.compile.modelled.row import Fate, FieldRow
from dralloc.compile.modelled.table import TABLE, row_of
from dralloc.compile.modelled.uses import FieldUse, used

__all__ = ["TABLE", "Fate", "FieldRow", "FieldUse", "row_of", "used"]
