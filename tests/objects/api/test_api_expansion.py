"""What controllers would make of owners and templates."""

import re

from dralloc.objects.api import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ObjectMeta,
    Pod,
    PodSet,
    PodSpec,
    PodTemplate,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from dralloc.objects.api.owners import (
    OWNERS,
    claim_for,
    claim_name,
    generated_name,
    pods_of,
)

POD = Pod(
    metadata=ObjectMeta(
        name="web-0",
        namespace="team",
        creation_timestamp="2026-01-01T00:00:00Z",
    )
)


def test_pods_of_a_deployment() -> None:
    template = PodTemplate(
        metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(priority=7)
    )
    deployment = OWNERS["apps", "Deployment"](
        metadata=ObjectMeta(
            name="web",
            namespace="team",
            creation_timestamp="2026-01-01T00:00:00Z",
        ),
        sets=(PodSet(ranges=((0, 2),), template=template),),
    )
    pods = list(pods_of(deployment, ()))
    assert [pod.name for pod in pods] == ["web-0", "web-1"]
    for pod in pods:
        assert pod.metadata.namespace == "team"
        assert pod.metadata.labels == {"app": "web"}
        assert pod.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
        assert pod.metadata.owner_references[0].name == "web"
        assert pod.spec.priority == 7


def test_names_are_generated_alike_every_time() -> None:
    assert generated_name("web-gpu-", "team") == generated_name(
        "web-gpu-", "team"
    )
    assert generated_name("web-gpu-", "team") != generated_name(
        "web-gpu-", "other"
    )
    assert re.fullmatch(
        "web-gpu-[bcdfghjklmnpqrstvwxz2456789]{5}",
        generated_name("web-gpu-", "team"),
    )
    assert len(generated_name("x" * 100)) == 63
    assert claim_name(POD, "gpu") == "web-0-gpu-lbncm"


def test_claims_of_templates() -> None:
    spec = ResourceClaimSpec(
        devices=DeviceClaim(
            requests=(
                DeviceRequest(
                    name="r",
                    exactly=ExactDeviceRequest(device_class_name="gpu"),
                ),
            )
        )
    )
    template = ResourceClaimTemplate(
        metadata=ObjectMeta(name="t", namespace="team"),
        spec=ResourceClaimTemplateSpec(
            metadata=ObjectMeta(labels={"a": "b"}, annotations={"c": "d"}),
            spec=spec,
        ),
    )
    claim = claim_for(POD, "gpu", template, "web-0-gpu-xxxxx")
    assert claim.spec is spec
    assert (claim.name, claim.metadata.namespace) == ("web-0-gpu-xxxxx", "team")
    assert claim.metadata.labels == {"a": "b"}
    assert claim.metadata.annotations == {
        "c": "d",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
    assert claim.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    [owner] = claim.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller) == ("Pod", "web-0", True)
