"""From single objects to what a cluster consists of.

First the objects that were given, each once (`given_objects`); then the nodes and classes that they name and that were
not given (`missing_objects`); then the pods, with those that controllers would make of their owners (`population`);
then the claims of pods, with those that are made from templates (`claiming`). `unasked` says why a pod is no part of
the question.
"""

__all__: list[str] = []
