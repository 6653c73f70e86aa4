"""Write the YAML files of this model.

Run ``python models/gpu-nic/generate.py``. The result depends on nothing but the constants below. The files
``expected.yaml`` and ``README.md`` are written by hand and stay untouched.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# --- sizes: what to change to make the model larger, smaller or tighter ---------------------------------------------

NODES = ["gpu-a", "gpu-b", "gpu-c"]


@dataclass(frozen=True)
class Root:
    """What hangs on one PCIe root complex: two GPUs, one RDMA adapter and perhaps an Ethernet adapter."""

    bus: int
    numa: int
    ethernet: str


ROOTS = [
    Root(0x10, 0, ""),
    Root(0x20, 0, "ens65"),
    Root(0x90, 1, "ens129"),
    Root(0xA0, 1, "ens161"),
]
GPUS_PER_ROOT = 2


@dataclass(frozen=True)
class Workload:
    """Pods that wait: a controller with ``replicas`` pods, each with its own claim made from ``template``."""

    kind: str
    name: str
    replicas: int
    template: str
    image: str


# In the order of arrival: the order in which first fit serves them.
WORKLOADS = [
    Workload(
        "StatefulSet",
        "ingest",
        3,
        "two-ethernets",
        "registry.example.com/ingest:9",
    ),
    Workload("Deployment", "rerank", 5, "gpu", "registry.example.com/serve:31"),
    Workload(
        "Job", "train", 2, "two-gpus-one-rdma", "registry.example.com/train:6"
    ),
    Workload(
        "Job",
        "pretrain",
        1,
        "four-gpus-two-rdma",
        "registry.example.com/train:6",
    ),
    Workload(
        "Deployment", "notebooks", 6, "gpu", "registry.example.com/notebook:5"
    ),
    Workload(
        "StatefulSet",
        "storage-gateway",
        1,
        "rdma-of-numa-1",
        "registry.example.com/gateway:4",
    ),
    Workload(
        "Job",
        "rdma-benchmark",
        1,
        "all-rdma-of-numa-1",
        "registry.example.com/perftest:2",
    ),
    Workload(
        "Job", "finetune", 5, "aligned-pair", "registry.example.com/finetune:17"
    ),
]

# --- the hardware: 8 x A100 40 GB, 4 x 100 Gbit/s RDMA, 3 Ethernet adapters -----------------------------------------

GPU_DRIVER = "gpu.nvidia.com"
NIC_DRIVER = "dra.net"
NAMESPACE = "ml"
WIDTH = 120  # of the written lines
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NUMA_NODE = "resource.kubernetes.io/numaNode"

Object = dict[str, Any]


class Flow(dict[str, Any]):
    """A mapping that is written in one line, as far as it fits."""


class Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, with indented lists and with ``Flow`` in flow style."""

    def increase_indent(
        self,
        flow: bool = False,
        indentless: bool = False,  # noqa: ARG002
    ) -> None:
        """Indent lists below their key."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Repeat equal parts instead of pointing to them."""
        return True


Dumper.add_representer(
    Flow,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data, True
    ),
)


def attributes(**values: str | int | bool) -> dict[str, Object]:
    """Return attributes of the driver's own domain, each under the name of its type."""
    kinds = {str: "string", int: "int", bool: "bool"}
    return {name: {kinds[type(value)]: value} for name, value in values.items()}


def device(
    name: str, own: dict[str, Object], root: Root, **more: Object
) -> Object:
    """Return a device with its own attributes and those of its place in the node."""
    place = {
        NUMA_NODE: {"int": root.numa},
        PCIE_ROOT: {"string": f"pci0000:{root.bus:02x}"},
    }
    return {
        "name": name,
        "attributes": Flow(
            {key: Flow(value) for key, value in {**own, **place}.items()}
        ),
        **more,
    }


def gpus(node: str) -> list[Object]:
    """Return the GPUs of a node, as gpu.nvidia.com lists them."""
    result = []
    for number in range(len(ROOTS) * GPUS_PER_ROOT):
        root = ROOTS[number // GPUS_PER_ROOT]
        own = attributes(
            type="gpu",
            uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node}/gpu-{number}')}",
            productName="NVIDIA A100-SXM4-40GB",
            brand="Nvidia",
            architecture="Ampere",
        )
        own |= {
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "580.95.5"},
        }
        address = f"0000:{root.bus:02x}:{0x1C + number % GPUS_PER_ROOT:02x}.0"
        own["resource.kubernetes.io/pciBusID"] = {"string": address}
        result.append(
            device(
                f"gpu-{number}",
                own,
                root,
                capacity=Flow(memory=Flow(value="40Gi")),
            )
        )
    return result


def adapters(node: str) -> list[Object]:
    """Return the network adapters of a node, as dra.net lists them: by PCI address."""
    result = []
    for root in ROOTS:
        if root.ethernet:
            number = 16 * NODES.index(node) + root.bus // 16
            own = attributes(
                ifName=root.ethernet,
                mac=f"02:00:00:00:{NODES.index(node):02x}:{root.bus:02x}",
                ipv4=f"10.20.0.{number}/19",
                mtu=9001,
                encapsulation="ether",
                state="up",
                type="device",
                sriov=False,
                virtual=False,
                **common(
                    root, "01.0", "Elastic Network Adapter (ENA)", rdma=False
                ),
            )
            result.append(device(f"pci-0000-{root.bus:02x}-01-0", own, root))
        own = attributes(
            rdmaDevice=f"rdmap{root.bus}s27",
            **common(root, "1b.0", "Elastic Fabric Adapter (EFA)", rdma=True),
        )
        result.append(device(f"pci-0000-{root.bus:02x}-1b-0", own, root))
    return result


def common(
    root: Root, function: str, model: str, *, rdma: bool
) -> dict[str, str | int | bool]:
    """Return what an adapter of either kind tells about itself."""
    return {
        "numaNode": root.numa,
        "pciAddress": f"0000:{root.bus:02x}:{function}",
        "pciDevice": model,
        "pciVendor": "Amazon.com, Inc.",
        "rdma": rdma,
    }


def resource_slice(driver: str, node: str, devices: list[Object]) -> Object:
    """Return the only slice of a node's pool."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": pool,
            "devices": devices,
        },
    }


def node_object(name: str) -> Object:
    """Return the Node."""
    labels = {
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
    }


# --- classes, templates, pods ---------------------------------------------------------------------------------------

CLASSES = {
    "gpu.nvidia.com": f"device.driver == '{GPU_DRIVER}' && device.attributes['{GPU_DRIVER}'].type == 'gpu'",
    "rdma.dra.net": f"device.driver == '{NIC_DRIVER}' && device.attributes['{NIC_DRIVER}'].rdma",
    "ethernet.dra.net": f"device.driver == '{NIC_DRIVER}' && !device.attributes['{NIC_DRIVER}'].rdma",
}


def device_class(name: str) -> Object:
    """Return a DeviceClass."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": CLASSES[name]}}]},
    }


def request(name: str, device_class_name: str, count: int = 1) -> Object:
    """Return a request for ``count`` devices of a class."""
    more = {"count": count} if count > 1 else {}
    return {
        "name": name,
        "exactly": {"deviceClassName": device_class_name, **more},
    }


def on_numa_1(name: str, count: Object) -> Object:
    """Return a request for RDMA adapters beside the second processor."""
    cel = f"device.attributes['{NIC_DRIVER}'].numaNode == 1"
    selectors = [{"cel": {"expression": cel}}]
    return {
        "name": name,
        "exactly": {
            "deviceClassName": "rdma.dra.net",
            "selectors": selectors,
            **count,
        },
    }


def claim(requests: list[Object], *constraints: Object) -> Object:
    """Return what a claim asks for."""
    return {
        "requests": requests,
        **({"constraints": list(constraints)} if constraints else {}),
    }


TEMPLATES: dict[str, Object] = {
    "gpu": claim([request("gpu", "gpu.nvidia.com")]),
    "rdma-of-numa-1": claim([on_numa_1("nic", {})]),
    "two-ethernets": claim(
        [request("uplink", "ethernet.dra.net", 2)],
        {"requests": ["uplink"], "distinctAttribute": NUMA_NODE},
    ),
    "aligned-pair": claim(
        [request("gpu", "gpu.nvidia.com"), request("nic", "rdma.dra.net")],
        {"requests": ["gpu", "nic"], "matchAttribute": PCIE_ROOT},
    ),
    "two-gpus-one-rdma": claim(
        [request("gpus", "gpu.nvidia.com", 2), request("nic", "rdma.dra.net")],
        {"requests": ["gpus", "nic"], "matchAttribute": PCIE_ROOT},
    ),
    "four-gpus-two-rdma": claim(
        [
            request("gpus", "gpu.nvidia.com", 4),
            request("nics", "rdma.dra.net", 2),
        ],
        {"requests": ["gpus", "nics"], "matchAttribute": NUMA_NODE},
    ),
    "all-rdma-of-numa-1": claim([on_numa_1("nics", {"allocationMode": "All"})]),
}


def template(name: str) -> Object:
    """Return a ResourceClaimTemplate."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": TEMPLATES[name]}},
    }


def workload(item: Workload) -> Object:
    """Return the Deployment, StatefulSet or Job of a workload."""
    labels = {"app": item.name}
    container = {
        "name": "main",
        "image": item.image,
        "resources": {"claims": [{"name": "devices"}]},
    }
    claims = [{"name": "devices", "resourceClaimTemplateName": item.template}]
    spec: Object = {"containers": [container], "resourceClaims": claims}
    pod: Object = {"metadata": {"labels": labels}, "spec": spec}
    metadata = {"name": item.name, "namespace": NAMESPACE}
    if item.kind == "Job":
        spec["restartPolicy"] = "Never"
        job = {
            "parallelism": item.replicas,
            "completions": item.replicas,
            "template": pod,
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": job,
        }
    more = {"serviceName": item.name} if item.kind == "StatefulSet" else {}
    replicated = {
        "replicas": item.replicas,
        **more,
        "selector": {"matchLabels": labels},
        "template": pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": item.kind,
        "metadata": metadata,
        "spec": replicated,
    }


def fold(line: str) -> str:
    """Break a long line between the entries of its mapping."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    lines, rest = [], line
    while (
        len(rest) > WIDTH
        and (end := rest.rfind("}, ", len(indent), WIDTH - 1)) > 0
    ):
        lines.append(rest[: end + 2])
        rest = indent + rest[end + 3 :]
    return "\n".join([*lines, rest])


def write(path: Path, objects: list[Object]) -> None:
    """Write ``objects`` as one file of YAML documents."""
    dumped = yaml.dump_all(
        objects,
        Dumper=Dumper,
        sort_keys=False,
        width=10_000,
        explicit_start=True,
    )
    text = "".join(fold(line) + "\n" for line in dumped.splitlines())
    path.write_text(
        "# Written by generate.py: change the constants there, not this file.\n"
        + text
    )
    print(f"{path.parent.name}/{path.name}: {len(objects)} objects")


def main() -> None:
    """Write all files."""
    here = Path(__file__).resolve().parent
    slices = [resource_slice(GPU_DRIVER, node, gpus(node)) for node in NODES]
    slices += [
        resource_slice(NIC_DRIVER, node, adapters(node)) for node in NODES
    ]
    used = dict.fromkeys(item.template for item in WORKLOADS)
    write(here / "nodes-and-slices.yaml", [*map(node_object, NODES), *slices])
    write(here / "classes.yaml", list(map(device_class, CLASSES)))
    write(
        here / "claims.yaml", [*map(template, used), *map(workload, WORKLOADS)]
    )


if __name__ == "__main__":
    main()
