"""Print the cluster: two A100 40GB with every MIG device of the table, and three claims for four devices of one GPU."""

import sys

import yaml

DRIVER = "gpu.nvidia.com"
API = "resource.k8s.io/v1"
COLUMNS = [
    "memory",
    "multiprocessors",
    "copy-engines",
    "decoders",
    "encoders",
    "jpeg-engines",
    "ofa-engines",
]
WHOLE = ["40Gi", "98", "7", "5", "0", "1", "1"]
PROFILES = {
    "1g.5gb": (1, range(7), ["4864Mi", "14", "1", "0", "0", "0", "0"]),
    "1g.5gb+me": (1, range(7), ["4864Mi", "14", "1", "1", "0", "1", "1"]),
    "1g.10gb": (2, (0, 2, 4, 6), ["9856Mi", "14", "1", "1", "0", "0", "0"]),
    "2g.10gb": (2, (0, 2, 4), ["9856Mi", "28", "2", "1", "0", "0", "0"]),
    "3g.20gb": (4, (0, 4), ["19968Mi", "42", "3", "2", "0", "0", "0"]),
    "4g.20gb": (4, (0,), ["19968Mi", "56", "4", "2", "0", "0", "0"]),
    "7g.40gb": (8, (0,), ["40192Mi", "98", "7", "5", "0", "1", "1"]),
}
"""Profile -> memory slices, where it may start, what it takes in the order of COLUMNS."""


def counters(amounts, slices):
    """Counters of a GPU or of a device on it: the table's columns and one counter for each memory slice."""
    return {
        **{
            name: {"value": amount}
            for name, amount in zip(COLUMNS, amounts, strict=True)
        },
        **{f"memory-slice-{number}": {"value": "1"} for number in slices},
    }


def capacity_name(counter):
    """A capacity is a C identifier: copy-engines -> copyEngines."""
    first, *rest = counter.split("-")
    return first + "".join(part.capitalize() for part in rest)


def device(gpu, name, kind, amounts, slices, **attributes):
    """A MIG device, or the whole GPU."""
    consumed = counters(amounts, slices)
    return {
        "name": name,
        "attributes": {
            "type": {"string": kind},
            **{key: {"string": value} for key, value in attributes.items()},
        },
        "capacity": {
            capacity_name(counter): value for counter, value in consumed.items()
        },
        "consumesCounters": [
            {"counterSet": f"gpu-{gpu}-counter-set", "counters": consumed}
        ],
    }


def devices(gpu):
    """Everything that can be had of one GPU, smallest first."""
    uuid = f"GPU-0000000{gpu}"
    for profile, (size, starts, amounts) in PROFILES.items():
        plain = profile.replace(".", "").replace("+", "-")
        for start in starts:
            slices = range(start, start + size)
            place = f"{start}" if size == 1 else f"{start}-{start + size - 1}"
            yield device(
                gpu,
                f"gpu-{gpu}-mig-{plain}-{place}",
                "mig",
                amounts,
                slices,
                profile=profile,
                parentUUID=uuid,
            )
    yield device(gpu, f"gpu-{gpu}", "gpu", WHOLE, range(8), uuid=uuid)


def resource_slice(name, **content):
    """One of the pool's two slices."""
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 2}
    spec = {"nodeName": "node-1", "driver": DRIVER, "pool": pool, **content}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name):
    """The KEP's claim: four MIG devices of one GPU."""
    wanted = {
        "mig-1g-5gb-0": "1g.5gb",
        "mig-1g-5gb-1": "1g.5gb",
        "mig-2g-10gb": "2g.10gb",
        "mig-3g-20gb": "3g.20gb",
    }
    requests = [
        {
            "name": request,
            "exactly": {
                "deviceClassName": "mig.nvidia.com",
                "selectors": [
                    {
                        "cel": {
                            "expression": f"device.attributes['{DRIVER}'].profile == '{profile}'"
                        }
                    }
                ],
            },
        }
        for request, profile in wanted.items()
    ]
    constraints = [{"requests": [], "matchAttribute": f"{DRIVER}/parentUUID"}]
    spec = {"devices": {"requests": requests, "constraints": constraints}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def documents():
    """All objects of the cluster."""
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "node-1",
            "labels": {"kubernetes.io/hostname": "node-1"},
        },
    }
    counter_sets = [
        {
            "name": f"gpu-{gpu}-counter-set",
            "counters": counters(WHOLE, range(8)),
        }
        for gpu in range(2)
    ]
    yield resource_slice("node-1-counters", sharedCounters=counter_sets)
    yield resource_slice(
        "node-1-devices",
        devices=[entry for gpu in range(2) for entry in devices(gpu)],
    )
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'"
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    yield {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": "mig.nvidia.com"},
        "spec": spec,
    }
    for name in ("mig-devices", "mig-devices-again", "mig-devices-too-many"):
        yield claim(name)


class Dumper(yaml.SafeDumper):
    """Writes equal objects out in full instead of as anchors and aliases."""

    def ignore_aliases(self, *_):
        """Never an alias."""
        return True


print("# Generated by generate.py.")
yaml.dump_all(
    documents(), sys.stdout, Dumper=Dumper, sort_keys=False, width=120
)
