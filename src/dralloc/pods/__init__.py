"""Pods as their nodes see them, whoever places them.

- `dralloc.pods.requests`: what a pod requests of its node;
- `dralloc.pods.selectors`: label selectors and pod affinity terms;
- `dralloc.pods.kinds`: what equal pods have in common, worked out once for all of them.
"""

__all__: list[str] = []
