"""The cluster if something were different: changed objects, of which everything is asked again.

Whoever asks "what if" builds a `Scenario`, takes its cluster and compiles that as any other. So every rule of the
compiler holds after a change as it did before: tolerations, node affinity, CPU, memory, ports, rules between pods,
devices.
"""

from dralloc.ask.scenario.scenario import Scenario, without_resources

__all__ = ["Scenario", "without_resources"]
