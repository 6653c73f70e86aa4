"""From a cluster to the problem that the solvers read.

- `dralloc.compiler.demands`: what is to be placed, and in which order;
- `dralloc.compiler.where`: which nodes a pod may be placed on;
- `dralloc.compiler.extended`: claims for the extended resources that pods ask for;
- `dralloc.compiler.pod_rules`: what binds pods to nodes and to each other, beside devices;
- `dralloc.compiler.gangs`: which pods are placed together;
- `dralloc.compiler.budgets`: what namespaces use of something that is capped or to be shared fairly;
- `dralloc.compiler.quota`: which claims a namespace may not have;
- `dralloc.compiler.remarks`: what allocated claims and published devices contradict.
"""

from __future__ import annotations

from dralloc.compiler.compile import CompiledCluster, compile_cluster

__all__ = ["CompiledCluster", "compile_cluster"]
