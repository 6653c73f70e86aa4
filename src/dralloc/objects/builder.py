"""Clusters in a few lines: nodes with so many devices of a product, pods that ask for so many; and a ready-made one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load, load_documents

__all__ = ["ClusterBuilder", "example"]

_API: Final = "resource.k8s.io/v1"
_PODS_PER_NODE: Final = 110
"""What the kubelet allows by default."""

Amount = int | str
"""A quantity as Kubernetes writes it, e.g. ``"512Gi"``, or a whole number."""


class ClusterBuilder:
    """Makes a cluster of nodes with devices by product, and of pods by shape. Every method can be called several times.

    What comes out are plain objects of Kubernetes: a Node and a ResourceSlice for each node, a DeviceClass for each
    product, and for each pod a Pod and a ResourceClaim. `objects` has them as dictionaries, to be written to a file or
    changed; `cluster` has them loaded.

    Parameters
    ----------
    driver
        The driver that publishes all devices.

    Examples
    --------
    >>> import dralloc
    >>> builder = dralloc.ClusterBuilder().nodes(100, {"H100": 8}, cpu=128, memory="2Ti")
    >>> builder = builder.pods(400, {"H100": 1}, cpu=8).pods(100, {"H100": 4}, priority=10)
    >>> dralloc.allocate(builder.cluster(), mode="first-fit")
    <Plan: first-fit: 500 of 500 placed, nothing proven>
    """

    def __init__(self, driver: str = "gpu.example.com") -> None:
        self.driver = driver
        self.objects: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._classes: set[str] = set()

    def nodes(  # noqa: PLR0913 - what nodes have
        self,
        count: int,
        devices: Mapping[str, int],
        *,
        name: str = "node",
        labels: Mapping[str, str] | None = None,
        cpu: Amount | None = None,
        memory: Amount | None = None,
    ) -> Self:
        """Add equal nodes.

        Parameters
        ----------
        count
            How many.
        devices
            How many devices of each product every node has.
        name
            What their names begin with; a number follows, from 0 on.
        labels
            Labels of all of them.
        cpu, memory
            What they have for pods; without any of the two, CPU and memory do not matter. A node takes 110 pods.

        Raises
        ------
        DrallocError
            A number is negative.
        """
        _refuse_negative(count, devices)
        amounts = {"cpu": cpu, "memory": memory}
        stock = {
            key: str(value)
            for key, value in amounts.items()
            if value is not None
        }
        status = (
            {"allocatable": {**stock, "pods": str(_PODS_PER_NODE)}}
            if stock
            else {}
        )
        for full in self._names("Node", name, count):
            metadata = {
                "name": full,
                "labels": {"kubernetes.io/hostname": full, **(labels or {})},
            }
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": metadata,
                "status": status,
            }
            self.objects += [node, self._slice(full, devices)]
        for product in devices:
            self._class(product)
        return self

    def _slice(self, node: str, devices: Mapping[str, int]) -> dict[str, Any]:
        """Return the slice that the driver publishes for a node."""
        published = [
            {
                "name": f"{_label(product)}-{index}",
                "attributes": {
                    "productName": {"string": product},
                    "index": {"int": index},
                },
            }
            for product, number_of in devices.items()
            for index in range(number_of)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": self.driver,
            "nodeName": node,
            "pool": pool,
            "devices": published,
        }
        return {
            "apiVersion": _API,
            "kind": "ResourceSlice",
            "metadata": {"name": node},
            "spec": spec,
        }

    def _class(self, product: str) -> None:
        """Add the DeviceClass of a product, once."""
        if product in self._classes:
            return
        self._classes.add(product)
        attribute = f"device.attributes['{self.driver}'].productName"
        expression = (
            f"device.driver == '{self.driver}' && {attribute} == '{product}'"
        )
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        metadata = {"name": _label(product)}
        self.objects.append(
            {
                "apiVersion": _API,
                "kind": "DeviceClass",
                "metadata": metadata,
                "spec": spec,
            }
        )

    def pods(  # noqa: PLR0913 - what pods ask for
        self,
        count: int,
        devices: Mapping[str, int],
        *,
        name: str = "",
        namespace: str = "default",
        priority: int = 0,
        cpu: Amount | None = None,
        memory: Amount | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Self:
        """Add pods of one shape, which are pending.

        Parameters
        ----------
        count
            How many.
        devices
            How many devices of each product every pod asks for, in one claim with a request for each product.
        name
            What their names begin with; by default what they ask for, as in ``h100-x4``.
        namespace, priority, labels
            Of all of them. Pods with the same value of a label are a gang if the question says so (choice ``gang``).
        cpu, memory
            What they request beside devices.

        Raises
        ------
        DrallocError
            A number is negative, or no device is asked for.
        """
        _refuse_negative(count, devices)
        if not any(devices.values()):
            raise DrallocError("pods: a pod has to ask for a device")
        shape = name or "-".join(
            f"{_label(product)}-x{device_count}"
            for product, device_count in devices.items()
        )
        amounts = {"cpu": cpu, "memory": memory}
        requested = {
            key: str(value)
            for key, value in amounts.items()
            if value is not None
        }
        container = {
            "name": "main",
            "image": "example",
            "resources": {"requests": requested},
        }
        for product in devices:
            self._class(product)
        for full in self._names(f"Pod {namespace}", shape, count):
            metadata = {"name": full, "namespace": namespace}
            requests = [
                {
                    "name": _label(product),
                    "exactly": {
                        "deviceClassName": _label(product),
                        "count": device_count,
                    },
                }
                for product, device_count in devices.items()
                if device_count
            ]
            claim = {"devices": {"requests": requests}}
            pod = {
                "containers": [container],
                "priority": priority,
                "resourceClaims": [
                    {"name": "devices", "resourceClaimName": full}
                ],
            }
            labelled = {**metadata, "labels": dict(labels or {})}
            self.objects += [
                {
                    "apiVersion": _API,
                    "kind": "ResourceClaim",
                    "metadata": metadata,
                    "spec": claim,
                },
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": labelled,
                    "spec": pod,
                },
            ]
        return self

    def cluster(self) -> Cluster:
        """Return all of it as a cluster. What `dralloc.validate` says of it is about names that were given here."""
        return load_documents(self.objects, source="<builder>")

    def _names(self, kind: str, start: str, count: int) -> list[str]:
        """So many new names that begin in the same way."""
        first = self._numbers.get((kind, start), 0)
        self._numbers[kind, start] = first + count
        return [f"{start}-{index}" for index in range(first, first + count)]


def _label(product: str) -> str:
    """Return a product as a name of Kubernetes."""
    return re.sub(r"[^a-z0-9]+", "-", product.lower()).strip("-")


def _refuse_negative(count: int, devices: Mapping[str, int]) -> None:
    for subject, amount in {"count": count, **devices}.items():
        if amount < 0:
            raise DrallocError(f"{subject}: {amount} is negative")


# ----------------------------------------------------------------------------
# A tiny cluster to try things with.


def example() -> Cluster:
    """Give a cluster of two nodes with three GPUs, of which one is in use, and two claims that wait for one.

    First fit gives the large GPU to the claim that would take any.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.compare(dralloc.example())
    <Comparison: 2 claims: first fit places 1, the optimum 2 (proven optimal)>
    """
    return load(Path(__file__).with_name("example.yaml"))
