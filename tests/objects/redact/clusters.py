"""Random clusters whose names are where names can be, and clash where names can clash."""

from __future__ import annotations

from hypothesis import strategies as st

from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    node,
    pod,
    request,
    resource_slice,
)

NAMES = [
    "a",
    "a-0",
    "b",
    "default",
    "gpu-0",
    "node-0001",
    "pool-0001",
    "x.internal",
    "z",
    "7",
    "other",
]
UUIDS = [
    "GPU-0f1e2d3c-aaaa-4bbb-8ccc-000000000001",
    "00000000-0000-0000-0000-000000000001",
    "02:00:00:00:00:01",
]
DRIVERS = [DRIVER, "nic.example.com"]
EXPRESSIONS = [
    "device.attributes['{driver}'].host == '{name}'",
    'device.attributes["{driver}"].?host.orValue("") != r"{name}"',
    "device.driver == '{driver}' // {name}",
    "device.attributes['{driver}'].host in ['{name}', \"\"\"a\"\"\", 'a\\x2d0']",
    "device.attributes['{driver}'].host in ['on/{name}', '{name}.a', 'a-{name}-0001']",
]
GLUED = ["on/{name}", "{name}.a", "a-{name}-0001", "{name}"]


def names() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES)


@st.composite
def requirements(draw: st.DrawFn) -> Json:
    key = draw(
        st.sampled_from(["kubernetes.io/hostname", "metadata.name", "zone"])
    )
    operator = draw(st.sampled_from(["In", "In", "NotIn"]))
    field = "matchFields" if key == "metadata.name" else "matchExpressions"
    return {
        field: [
            {
                "key": key,
                "operator": operator,
                "values": draw(st.lists(names(), min_size=1, max_size=2)),
            }
        ]
    }


@st.composite
def selectors(draw: st.DrawFn) -> Json:
    return {
        "nodeSelectorTerms": draw(
            st.lists(requirements(), min_size=1, max_size=2)
        )
    }


@st.composite
def devices(draw: st.DrawFn, name: str) -> Json:
    attributes = {
        "host": draw(st.sampled_from(GLUED)).format(
            name=draw(st.sampled_from([*NAMES, *UUIDS]))
        ),
        "numa": draw(st.integers(0, 1)),
        "example.com/group": draw(
            st.lists(
                st.sampled_from([*NAMES[:3], *UUIDS]), min_size=1, max_size=2
            )
        ),
    }
    return device(name, attributes)


@st.composite
def slices(draw: st.DrawFn, nodes: list[str]) -> list[Json]:
    resource_slices = []
    pools = st.tuples(st.sampled_from(DRIVERS), names())
    slice_names = draw(st.lists(names(), min_size=4, max_size=4, unique=True))
    for (driver, pool), name in zip(
        draw(st.lists(pools, max_size=4, unique=True)),
        slice_names,
        strict=False,
    ):
        where: Json = draw(
            st.one_of(
                st.sampled_from(nodes).map(
                    lambda node_name: {"nodeName": node_name}
                ),
                selectors().map(
                    lambda node_selector: {"nodeSelector": node_selector}
                ),
                st.just({"allNodes": True}),
            )
        )
        held = [
            draw(devices(device_name))
            for device_name in draw(
                st.lists(names(), min_size=1, max_size=3, unique=True)
            )
        ]
        resource_slices.append(
            resource_slice(held, name=name, pool=pool, driver=driver, **where)
        )
    return resource_slices


@st.composite
def requests(draw: st.DrawFn, name: str) -> Json:
    expression = draw(st.sampled_from(EXPRESSIONS)).format(
        driver=draw(st.sampled_from(DRIVERS)), name=draw(names())
    )
    wanted: tuple[str, ...] = draw(st.sampled_from([(), (expression,)]))
    fields: Json = draw(
        st.sampled_from([{}, {"count": 2}, {"allocationMode": "All"}])
    )
    return request(name, *wanted, **fields)


@st.composite
def claims(draw: st.DrawFn, name: str) -> Json:
    constraint = draw(
        st.sampled_from([None, "host", "numa", "example.com/group"])
    )
    kind = draw(st.sampled_from(["matchAttribute", "distinctAttribute"]))
    constraints = (
        [
            {
                kind: f"{DRIVER}/{constraint}"
                if constraint == "host"
                else constraint
            }
        ]
        if constraint
        else []
    )
    return claim(
        name,
        *(
            draw(requests(request_name))
            for request_name in ("gpu", "a")[: draw(st.integers(1, 2))]
        ),
        constraints=constraints,
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    """Nodes, slices, a class, claims (one may hold a device), and pods with node selectors."""
    nodes = draw(st.lists(names(), min_size=1, max_size=3, unique=True))
    objects = [node(name, zone=draw(names())) for name in nodes]
    for node_object in objects:
        node_object["metadata"]["labels"]["kubernetes.io/hostname"] = (
            node_object["metadata"]["name"]
        )
    published = draw(slices(nodes))
    objects += [device_class("gpu"), *published]
    claim_names = draw(st.lists(names(), min_size=1, max_size=4, unique=True))
    objects += [draw(claims(name)) for name in claim_names]
    for document in objects:
        if document["kind"] == "ResourceClaim" and draw(st.booleans()):
            document["metadata"]["namespace"] = "z"
    if draw(st.booleans()) and published:
        spec = draw(st.sampled_from(published))["spec"]
        use = {
            "driver": spec["driver"],
            "pool": spec["pool"]["name"],
            "device": spec["devices"][0]["name"],
        }
        objects.append(allocated("held", use))
    for claim_index, user in enumerate(
        draw(st.lists(names(), max_size=2, unique=True))
    ):
        where: Json = draw(
            st.sampled_from(
                [{}, {"zone": "a"}, {"kubernetes.io/hostname": nodes[0]}]
            )
        )
        used = claim_names[claim_index : claim_index + 1]
        objects.append(pod(user, *used, nodeSelector=where))
    return objects
