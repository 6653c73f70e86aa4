"""Pods as their nodes see them, whoever places them.

- `dralloc.compile.pods.requests`: what a pod requests of its node;
- `dralloc.compile.pods.selectors`: label selectors and pod affinity terms;
- `dralloc.compile.pods.kinds`: what equal pods have in common, worked out once for all of them.
"""

__all__: list[str] = []
