"""From files, directories and standard input to a `Cluster`.

Text is JSON when it starts like JSON, and YAML otherwise; both may be compressed with gzip. Several documents in one
file and lists (``kind: List``, ``kind: ResourceSliceList``) are taken apart.
"""

from __future__ import annotations

from dralloc.objects.load.loading import (
    STDIN,
    Reading,
    load,
    load_documents,
    load_objects,
    load_text,
    read,
    read_documents,
)

__all__ = [
    "STDIN",
    "Reading",
    "load",
    "load_documents",
    "load_objects",
    "load_text",
    "read",
    "read_documents",
]
