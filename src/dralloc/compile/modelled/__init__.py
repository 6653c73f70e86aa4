"""The table of the API's fields that can change a placement, and how each mode treats them.

`TABLE` has a row for each field of the objects that are read. From it come the notices, what ``--strict`` refuses, and
the page of the documentation; a test holds it against the types of the API. First what a row is (`field_rows`), then
the rows (`resource_rows`, `workload_rows`, and all of them in `table`), and in the end which objects use fields that
some mode does not model (`field_uses`).
"""

__all__: list[str] = []
