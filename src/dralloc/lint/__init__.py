"""Checks of the input by the API server's rules (validate), and of answers by upstream's (conformance)."""

__all__: list[str] = []
