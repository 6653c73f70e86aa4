"""From single objects to what a cluster consists of.

- `dralloc.objects.assembly.objects`: what was given, each object once;
- `dralloc.objects.assembly.missing`: the nodes, where none was given, and classes that are missing;
- `dralloc.objects.assembly.pods`: the pods, with those that controllers would make of their owners;
- `dralloc.objects.assembly.claims`: the claims of pods, with those that are made from templates.
"""

__all__: list[str] = []
