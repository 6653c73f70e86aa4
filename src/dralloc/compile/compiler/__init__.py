"""From a cluster to the problem that the solvers read.

- `dralloc.compile.compiler.demands`: what is to be placed, in which order, and on which nodes it may be;
- `dralloc.compile.compiler.extended`: claims for the extended resources that pods ask for;
- `dralloc.compile.compiler.pod_rules`: what binds pods to nodes and to each other, beside devices;
- `dralloc.compile.compiler.gangs`: which pods are placed together;
- `dralloc.compile.compiler.worth`: what namespaces may still use, and what placing a demand is worth;
- `dralloc.compile.compiler.compile`: all of this, step by step, with what allocated claims and devices contradict.
"""

from __future__ import annotations

from dralloc.compile.compiler.compile import CompiledCluster, compile_cluster

__all__ = ["CompiledCluster", "compile_cluster"]
