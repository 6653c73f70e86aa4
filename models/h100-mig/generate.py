"""Write the YAML files of this model and the cluster of its smallest form, ../h100-mig-smallest.

Run ``python models/h100-mig/generate.py``. The result depends on nothing but the constants below. The files
``expected.yaml`` and ``README.md`` are written by hand and stay untouched.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# --- sizes: what to change to make the model larger, smaller or tighter ---------------------------------------------

NODES = ["h100-1", "h100-2"]
GPUS_PER_NODE = 8
WIDTH = 120  # of the written lines
GPUS_PER_SLICE = 2  # 26 devices each; a slice whose devices consume counters holds at most 64


@dataclass(frozen=True)
class Running:
    """A claim that is already allocated: what it holds on which node."""

    name: str
    node: str
    template: str
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """Pods that wait: a controller with ``replicas`` pods, each with its own claim made from ``template``."""

    kind: str
    name: str
    replicas: int
    template: str
    image: str


RUNNING = [
    Running("pretrain-0", "h100-1", "two-gpus", ("gpu-0", "gpu-1")),
    Running("notebook-anna", "h100-1", "mig-1g", ("gpu-2-mig-1g10gb-19-5",)),
    Running("notebook-bela", "h100-1", "mig-1g", ("gpu-4-mig-1g10gb-19-2",)),
    Running("translate-0", "h100-1", "mig-3g", ("gpu-6-mig-3g40gb-9-4",)),
    Running("notebook-chen", "h100-2", "mig-1g", ("gpu-3-mig-1g10gb-19-6",)),
    Running("ocr-0", "h100-2", "mig-2g", ("gpu-5-mig-2g20gb-14-4",)),
]

# In the order of arrival: the order in which first fit serves them.
WORKLOADS = [
    Workload(
        "Deployment",
        "notebooks",
        12,
        "mig-1g",
        "registry.example.com/notebook:5",
    ),
    Workload(
        "Job",
        "evaluate-small",
        4,
        "mig-1g-wide",
        "registry.example.com/evaluate:12",
    ),
    Workload(
        "Deployment", "chat-8b", 2, "mig-3g", "registry.example.com/serve:31"
    ),
    Workload(
        "Deployment",
        "transcode",
        5,
        "mig-1g-media",
        "registry.example.com/transcode:3",
    ),
    Workload(
        "Deployment", "embed", 4, "mig-2g", "registry.example.com/embed:8"
    ),
    Workload(
        "StatefulSet",
        "draft-and-target",
        1,
        "draft-and-target",
        "registry.example.com/serve:31",
    ),
    Workload(
        "Deployment",
        "notebooks-course",
        9,
        "mig-1g",
        "registry.example.com/notebook:5",
    ),
    Workload(
        "Job",
        "train-and-evaluate",
        1,
        "train-and-evaluate",
        "registry.example.com/finetune:17",
    ),
    Workload(
        "Deployment",
        "rerank",
        2,
        "four-or-three-or-two-twos",
        "registry.example.com/serve:31",
    ),
    Workload(
        "Job",
        "evaluate-large",
        2,
        "mig-1g-wide",
        "registry.example.com/evaluate:12",
    ),
    Workload(
        "Job", "finetune", 2, "mig-4g", "registry.example.com/finetune:17"
    ),
    Workload("Job", "distill", 3, "mig-4g", "registry.example.com/finetune:17"),
    Workload("Job", "benchmark", 1, "gpu", "registry.example.com/benchmark:2"),
]

# --- the hardware: NVIDIA H100 80GB HBM3 ----------------------------------------------------------------------------

DRIVER = "gpu.nvidia.com"
NAMESPACE = "ml"
MEMORY_SLICES = 8

# The whole GPU. Keys are the capacity names, of which the counter names follow (copyEngines -> copy-engines).
WHOLE = {
    "memory": "81152Mi",
    "multiprocessors": "132",
    "copyEngines": "8",
    "decoders": "7",
    "encoders": "0",
    "jpegEngines": "7",
    "ofaEngines": "1",
}


@dataclass(frozen=True)
class Profile:
    """A MIG profile: its name, NVML's id of it, what one instance takes, and where it may start."""

    name: str
    number: int
    memory: str
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg_engines: int
    ofa_engines: int
    slices: int
    starts: tuple[int, ...]

    def capacity(self) -> dict[str, str]:
        """Return the amounts an instance has, under the names of ``WHOLE``."""
        amounts = (
            self.memory,
            self.multiprocessors,
            self.copy_engines,
            self.decoders,
            0,
        )
        return dict(
            zip(
                WHOLE,
                map(str, (*amounts, self.jpeg_engines, self.ofa_engines)),
                strict=True,
            )
        )


PROFILES = [
    Profile("1g.10gb", 19, "9984Mi", 16, 1, 1, 1, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile(
        "1g.10gb+me", 20, "9984Mi", 16, 1, 1, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)
    ),
    Profile("1g.20gb", 15, "20096Mi", 26, 1, 1, 1, 0, 2, (0, 2, 4, 6)),
    Profile("2g.20gb", 14, "20096Mi", 32, 2, 2, 2, 0, 2, (0, 2, 4)),
    Profile("3g.40gb", 9, "40448Mi", 60, 3, 3, 3, 0, 4, (0, 4)),
    Profile("4g.40gb", 5, "40448Mi", 64, 4, 4, 4, 0, 4, (0,)),
    Profile("7g.80gb", 0, "81152Mi", 132, 8, 7, 7, 1, 8, (0,)),
]

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


def flow(values: dict[str, Object]) -> Flow:
    """Return a mapping of mappings (attributes, capacities, counters) to be written without a line for each value."""
    return Flow({key: Flow(value) for key, value in values.items()})


def counters(amounts: dict[str, str], slices: range) -> Flow:
    """Return counters of ``amounts`` and one counter of 1 for each memory slice."""
    kebab = {
        "copyEngines": "copy-engines",
        "jpegEngines": "jpeg-engines",
        "ofaEngines": "ofa-engines",
    }
    named = {
        kebab.get(name, name): {"value": value}
        for name, value in amounts.items()
    }
    return flow(named | {f"memory-slice-{i}": {"value": "1"} for i in slices})


def counter_set(gpu: int) -> Object:
    """Return everything a GPU can give to its partitions."""
    return {
        "name": f"gpu-{gpu}-counters",
        "counters": counters(WHOLE, range(MEMORY_SLICES)),
    }


def device(
    name: str,
    gpu: int,
    attributes: dict[str, Object],
    amounts: dict[str, str],
    slices: range,
) -> Object:
    """Return one device of a slice: a whole GPU or one placement of a MIG profile on it."""
    return {
        "name": name,
        "attributes": flow(attributes),
        "capacity": flow(
            {key: {"value": value} for key, value in amounts.items()}
        ),
        "consumesCounters": [
            {
                "counterSet": f"gpu-{gpu}-counters",
                "counters": counters(amounts, slices),
            }
        ],
    }


def devices(node: str, gpu: int) -> list[Object]:
    """Return the GPU and its placements, in the order drivers publish: by profile, and by start within a profile."""
    gpu_uuid = f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node}/gpu-{gpu}')}"
    common = {
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "driverVersion": {"version": "580.95.5"},
        "resource.kubernetes.io/pciBusID": {
            "string": f"0000:{0x40 + 0x10 * gpu:02x}:00.0"
        },
        "resource.kubernetes.io/pcieRoot": {
            "string": f"pci0000:{0x40 + 0x10 * gpu:02x}"
        },
    }
    whole = {
        "type": {"string": "gpu"},
        "uuid": {"string": gpu_uuid},
        "index": {"int": gpu},
    } | common
    result = [device(f"gpu-{gpu}", gpu, whole, WHOLE, range(MEMORY_SLICES))]
    for profile in PROFILES:
        own = {
            "type": {"string": "mig"},
            "profile": {"string": profile.name},
            "parentUUID": {"string": gpu_uuid},
        }
        attributes = own | {"parentIndex": {"int": gpu}} | common
        plain = profile.name.replace(".", "").replace("+", "-")
        for start in profile.starts:
            name = f"gpu-{gpu}-mig-{plain}-{profile.number}-{start}"
            slices = range(start, start + profile.slices)
            result.append(
                device(name, gpu, attributes, profile.capacity(), slices)
            )
    return result


def resource_slices(node: str, gpus: int) -> list[Object]:
    """Return the pool of a node: a slice with the counters, then slices with the devices of a few GPUs each."""
    groups = [
        range(i, min(i + GPUS_PER_SLICE, gpus))
        for i in range(0, gpus, GPUS_PER_SLICE)
    ]
    parts: list[tuple[str, Object]] = [
        ("counters", {"sharedCounters": [counter_set(i) for i in range(gpus)]})
    ]
    parts += [
        (
            f"gpus-{group[0]}",
            {"devices": [item for i in group for item in devices(node, i)]},
        )
        for group in groups
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{DRIVER}-{suffix}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": pool,
                **content,
            },
        }
        for suffix, content in parts
    ]


def node_object(name: str) -> Object:
    """Return the Node."""
    labels = {
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
    }


# --- classes, templates, pods ---------------------------------------------------------------------------------------


def device_class(name: str, kind: str) -> Object:
    """Return the class of whole GPUs or of MIG devices."""
    cel = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": cel}}]},
    }


def wanted(profile: str, count: int = 1) -> Object:
    """Return what a request for MIG devices of one profile asks."""
    cel = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    selectors = [{"cel": {"expression": cel}}]
    more = {"count": count} if count > 1 else {}
    return {"deviceClassName": "mig.nvidia.com", "selectors": selectors, **more}


def mig(name: str, profile: str) -> Object:
    """Return a request for one MIG device."""
    return {"name": name, "exactly": wanted(profile)}


SAME_GPU = {"matchAttribute": f"{DRIVER}/parentUUID"}
TEMPLATES: dict[str, Object] = {
    "mig-1g": {"requests": [mig("mig", "1g.10gb")]},
    "mig-1g-media": {"requests": [mig("mig", "1g.10gb+me")]},
    "mig-1g-wide": {"requests": [mig("mig", "1g.20gb")]},
    "mig-2g": {"requests": [mig("mig", "2g.20gb")]},
    "mig-3g": {"requests": [mig("mig", "3g.40gb")]},
    "mig-4g": {"requests": [mig("mig", "4g.40gb")]},
    "draft-and-target": {
        "requests": [mig("draft", "1g.10gb"), mig("target", "4g.40gb")],
        "constraints": [{"requests": ["draft", "target"], **SAME_GPU}],
    },
    "train-and-evaluate": {
        "requests": [mig("train", "3g.40gb"), mig("evaluate", "1g.20gb")],
        "constraints": [{"requests": ["train", "evaluate"], **SAME_GPU}],
    },
    "four-or-three-or-two-twos": {
        "requests": [
            {
                "name": "mig",
                "firstAvailable": [
                    {"name": "four", **wanted("4g.40gb")},
                    {"name": "three", **wanted("3g.40gb")},
                    {"name": "two-twos", **wanted("2g.20gb", 2)},
                ],
            }
        ],
        "constraints": [{"requests": ["mig"], **SAME_GPU}],
    },
    "gpu": {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
        ]
    },
    "two-gpus": {
        "requests": [
            {
                "name": "gpu",
                "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2},
            }
        ]
    },
}


def template(name: str) -> Object:
    """Return a ResourceClaimTemplate."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": TEMPLATES[name]}},
    }


def pod_spec(claim: Object, image: str) -> Object:
    """Return the spec of a pod with one container and one claim."""
    container = {
        "name": "main",
        "image": image,
        "resources": {"claims": [{"name": "device"}]},
    }
    return {
        "containers": [container],
        "resourceClaims": [{"name": "device", **claim}],
    }


def workload(item: Workload) -> Object:
    """Return the Deployment, StatefulSet or Job of a workload."""
    labels = {"app": item.name}
    spec = pod_spec({"resourceClaimTemplateName": item.template}, item.image)
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


def allocated(item: Running) -> Object:
    """Return a ResourceClaim with the devices it holds."""
    request = TEMPLATES[item.template]["requests"][0]["name"]
    results = [
        {
            "request": request,
            "driver": DRIVER,
            "pool": item.node,
            "device": name,
        }
        for name in item.devices
    ]
    fields = [{"key": "metadata.name", "operator": "In", "values": [item.node]}]
    user = {
        "resource": "pods",
        "name": item.name,
        "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"pod/{item.name}")),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": item.name, "namespace": NAMESPACE},
        "spec": {"devices": TEMPLATES[item.template]},
        "status": {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {
                    "nodeSelectorTerms": [{"matchFields": fields}]
                },
            },
            "reservedFor": [user],
        },
    }


def smallest() -> list[Object]:
    """Return one node with one GPU, and two pods of which the first can block the second."""
    objects = [
        node_object("h100"),
        *resource_slices("h100", 1),
        device_class("mig.nvidia.com", "mig"),
    ]
    for name, profile in {"small": "1g.10gb", "large": "4g.40gb"}.items():
        claim = {"devices": {"requests": [mig("mig", profile)]}}
        metadata = {"name": name, "namespace": "default"}
        spec = pod_spec(
            {"resourceClaimName": name}, "registry.example.com/serve:31"
        )
        objects += [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": metadata,
                "spec": claim,
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": spec,
            },
        ]
    return objects


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
        "# Written by models/h100-mig/generate.py: change the constants there, not this file.\n"
        + text
    )
    print(f"{path.parent.name}/{path.name}: {len(objects)} objects")


def main() -> None:
    """Write all files."""
    here = Path(__file__).resolve().parent
    slices = [
        item for node in NODES for item in resource_slices(node, GPUS_PER_NODE)
    ]
    write(here / "nodes-and-slices.yaml", [*map(node_object, NODES), *slices])
    write(
        here / "classes.yaml",
        [
            device_class("gpu.nvidia.com", "gpu"),
            device_class("mig.nvidia.com", "mig"),
        ],
    )
    used = dict.fromkeys(item.template for item in WORKLOADS)
    write(
        here / "claims.yaml",
        [
            *map(template, used),
            *map(allocated, RUNNING),
            *map(workload, WORKLOADS),
        ],
    )
    write(here.parent / "h100-mig-smallest" / "cluster.yaml", smallest())


if __name__ == "__main__":
    main()
