"""Kubernetes' own types: attribute values, quantities, versions, addresses and URLs.

All of them are read and compared as the Go libraries do that upstream uses.
"""

__all__: list[str] = []
