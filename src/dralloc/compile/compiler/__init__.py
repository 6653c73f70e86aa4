"""From a cluster to the problem that the solvers read.

- `dralloc.compile.compiler.demands`: what is to be placed, and in which order;
- `dralloc.compile.compiler.where`: which nodes a pod may be placed on;
- `dralloc.compile.compiler.extended`: claims for the extended resources that pods ask for;
- `dralloc.compile.compiler.pod_rules`: what binds pods to nodes and to each other, beside devices;
- `dralloc.compile.compiler.gangs`: which pods are placed together;
- `dralloc.compile.compiler.budgets`: what namespaces use of something that is capped or to be shared fairly;
- `dralloc.compile.compiler.quota`: which claims a namespace may not have;
- `dralloc.compile.compiler.remarks`: what allocated claims and published devices contradict.
"""

from __future__ import annotations

from dralloc.compile.compiler.compile import CompiledCluster, compile_cluster

__all__ = ["CompiledCluster", "compile_cluster"]
