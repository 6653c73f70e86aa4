"""From single objects to what a cluster consists of.

- `dralloc.assembly.objects`: what was given, each object once;
- `dralloc.assembly.nodes`: the nodes, where none was given;
- `dralloc.assembly.pods`: the pods, with those that controllers would make of their owners;
- `dralloc.assembly.claims`: the claims of pods, with those that are made from templates;
- `dralloc.assembly.classes`: classes that are missing.
"""

__all__: list[str] = []
