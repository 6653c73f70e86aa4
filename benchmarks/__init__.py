"""Benchmarks: named workloads in any size, from generated Kubernetes objects to checked and written answers.

Run ``python -m benchmarks list``; benchmarks/README.md has figures.
"""

from __future__ import annotations
