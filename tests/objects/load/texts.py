"""A slice and a node as text, and what is wrong with a text."""

import pytest

from dralloc.objects.errors import InputError
from dralloc.objects.load import load_text

__all__ = ["NODE", "SLICE", "findings_of_error"]

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: s
spec:
  driver: gpu.example.com
  nodeName: m
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes:
      model: {string: A100}
    capacity:
      memory: {value: 40Gi}
"""

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: m}\n"


def findings_of_error(text: str | bytes, source: str = "a.yaml") -> str:
    with pytest.raises(InputError) as error:
        load_text(text, source=source)
    return str(error.value)
