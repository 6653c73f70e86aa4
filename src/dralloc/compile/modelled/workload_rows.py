"""The rows of pods, their groups and priorities, and namespaces."""

from __future__ import annotations

from typing import Any, Final

from dralloc.compile.modelled.field_rows import (
    Fate,
    FieldRow,
    ignored,
    modelled,
    no_matter,
    preferred,
)
from dralloc.compile.modelled.resource_rows import NODE_SELECTOR, NODE_TERM
from dralloc.objects.choices import Mode

__all__ = ["WORKLOADS"]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LABELS: Final = "{matchLabels,matchExpressions.{key,operator,values}}"
_TERM: Final = (
    f"{{labelSelector.{_LABELS},namespaces,namespaceSelector.{_LABELS},"
    "topologyKey,matchLabelKeys,mismatchLabelKeys}"
)
_CONTAINERS: Final = "Pod spec.{initContainers,containers}"
_SCHEDULER_ONLY: Final = {
    Mode.FIRST_FIT: Fate.NO_MATTER,
    Mode.OPTIMAL: Fate.NO_MATTER,
}
_NOT_SCHEDULER: Final = {Mode.SCHEDULER: Fate.IGNORED}


def _awaits_admission(pod: Any, name: Any) -> bool:
    """Whether a RuntimeClass has yet to add its overhead, node selector and tolerations to the pod."""
    return bool(name) and not pod.metadata.uid


WORKLOADS: Final[tuple[FieldRow, ...]] = (
    *modelled("names the pod", "Pod metadata.{name,namespace,uid}"),
    *modelled("what others select pods by", "Pod metadata.labels"),
    *modelled(
        "the order of pods",
        "Pod metadata.creationTimestamp",
        "Pod spec.priority",
    ),
    *modelled(
        "priorities by name",
        "Pod spec.priorityClassName",
        "PriorityClass {metadata.name,value,globalDefault}",
    ),
    *modelled(
        "pods that end hold nothing and are not placed",
        "Pod {metadata.deletionTimestamp,status.phase}",
    ),
    *modelled(
        "which owners need no more pods, what pods are worth, and what is to be true of several of their claims",
        "Pod metadata.{annotations,ownerReferences.{apiVersion,kind,name,uid,controller}}",
    ),
    *modelled("a pod with a node stays there", "Pod spec.nodeName"),
    *modelled(
        "claims of the pod (KEP-4381)",
        "Pod spec.resourceClaims.{name,resourceClaimName,resourceClaimTemplateName}",
        "Pod status.resourceClaimStatuses.{name,resourceClaimName}",
    ),
    *modelled(
        "pods with gates are not placed", "Pod spec.schedulingGates.name"
    ),
    *modelled("which nodes are allowed", "Pod spec.nodeSelector"),
    *modelled(
        "which nodes are allowed",
        f"Pod spec.affinity.nodeAffinity.{_REQUIRED}.{NODE_SELECTOR}",
    ),
    *modelled(
        "taints of nodes", "Pod spec.tolerations.{key,operator,value,effect}"
    ),
    *modelled(
        "affinity to other pods",
        f"Pod spec.affinity.{{podAffinity,podAntiAffinity}}.{_REQUIRED}.{_TERM}",
    ),
    *modelled(
        "topology spread; the scheduler scores with what may be violated",
        f"Pod spec.topologySpreadConstraints.{{maxSkew,topologyKey,whenUnsatisfiable,labelSelector.{_LABELS}}}",
        "Pod spec.topologySpreadConstraints.{minDomains,nodeAffinityPolicy,nodeTaintsPolicy,matchLabelKeys}",
    ),
    *modelled(
        "what the pod takes of its node, and extended resources (KEP-5004)",
        f"{_CONTAINERS}.resources.{{requests,limits}}",
        "Pod spec.{resources.{requests,limits},overhead}",
        "Pod spec.initContainers.restartPolicy",
    ),
    *modelled(
        "what the devices of the pod take of its node (KEP-5517)",
        f"{_CONTAINERS}.resources.claims.name",
        "Pod status.nodeAllocatableResourceClaimStatuses.{containers,resources,mapping.{name,quantity}}",
        "Pod status.nodeAllocatableResourceClaimStatuses.overhead.{name,perPod,perContainer}",
    ),
    *modelled(
        "ports of the node",
        f"{_CONTAINERS}.ports.{{hostPort,containerPort,hostIP,protocol}}",
        "Pod spec.hostNetwork",
    ),
    *modelled(
        "gangs (KEP-4671)",
        "Pod spec.schedulingGroup.podGroupName",
        "PodGroup spec.schedulingPolicy.gang.minCount",
    ),
    *modelled(
        "gangs (KEP-4671)",
        "Pod spec.workloadRef.{name,podGroup,podGroupReplicaKey}",
        "Workload spec.podGroups.policy.gang.minCount",
        but=_NOT_SCHEDULER,
    ),
    *modelled(
        "constraints over claims of the group (`dralloc.dev/across`)",
        "{PodGroup,Workload} metadata.annotations",
    ),
    *modelled(
        "groups of groups (KEP-6012)",
        "{PodGroup,CompositePodGroup} spec.parentCompositePodGroupName",
        "CompositePodGroup spec.schedulingPolicy.gang.minGroupCount",
    ),
    *modelled(
        "groups of groups in one domain (KEP-6012)",
        "CompositePodGroup spec.schedulingConstraints.topology.key",
    ),
    *modelled(
        "names the group",
        "{PodGroup,CompositePodGroup,Workload} metadata.{name,namespace}",
        "Workload spec.podGroups.name",
    ),
    *modelled(
        "claims of a group (KEP-5729)",
        "PodGroup spec.resourceClaims.{name,resourceClaimName,resourceClaimTemplateName}",
        "PodGroup status.resourceClaimStatuses.{name,resourceClaimName}",
    ),
    *modelled(
        "groups in one domain (KEP-5732)",
        "PodGroup spec.schedulingConstraints.topology.key",
    ),
    *preferred(
        "which nodes are preferred",
        f"Pod spec.affinity.nodeAffinity.{_PREFERRED}.{{weight,preference.{NODE_TERM}}}",
        f"Pod spec.affinity.{{podAffinity,podAntiAffinity}}.{_PREFERRED}.{{weight,podAffinityTerm.{_TERM}}}",
    ),
    *preferred(
        "images that nodes have already",
        f"{_CONTAINERS}.image",
        "Pod spec.volumes.image.reference",
    ),
    *preferred("which profile schedules the pod", "Pod spec.schedulerName"),
    *preferred(
        "a scheduler that has tried pods runs: the older ones come first",
        "Pod status.conditions.reason",
    ),
    *preferred(
        "which pods are nominated for nodes where others would be evicted for them",
        "Pod spec.preemptionPolicy",
        "PriorityClass preemptionPolicy",
    ),
    *ignored(
        "volumes, which bind pods to nodes that can have them",
        "Pod spec.volumes.{persistentVolumeClaim,ephemeral,csi}",
        "Pod spec.volumes.{awsElasticBlockStore,azureDisk,cinder,gcePersistentDisk}",
        "Pod spec.volumes.{iscsi,portworxVolume,rbd,vsphereVolume}",
    ),
    *ignored(
        "features that nodes must declare (KEP-5328)",
        f"{_CONTAINERS}.restartPolicyRules.action",
        says=lambda _, action: bool(action == "RestartAllContainers"),
    ),
    *ignored(
        "features that nodes must declare (KEP-5328)",
        "Pod spec.hostUsers",
        says=lambda pod, shares: shares is False and pod.spec.host_network,
    ),
    *ignored(
        "what its RuntimeClass adds when the pod is made: overhead, node selector, tolerations",
        "Pod spec.runtimeClassName",
        says=_awaits_admission,
    ),
    *ignored(
        "a pod being resized takes the more of what it had and gets",
        "Pod status.conditions.type",
        says=lambda _, kind: (
            kind in ("PodResizePending", "PodResizeInProgress")
        ),
        of_running=True,
    ),
    *ignored(
        "nodes that are nominated for pods",
        "Pod status.nominatedNodeName",
        but=_SCHEDULER_ONLY,
    ),
    *no_matter(
        "Pod metadata",
        "Pod spec.tolerations.tolerationSeconds",
        f"{_CONTAINERS}.{{name,command,args,workingDir,envFrom,env,resizePolicy,volumeMounts,volumeDevices}}",
        f"{_CONTAINERS}.{{livenessProbe,readinessProbe,startupProbe,lifecycle,terminationMessagePath}}",
        f"{_CONTAINERS}.{{terminationMessagePolicy,imagePullPolicy,securityContext,stdin,stdinOnce,tty}}",
        f"{_CONTAINERS}.{{resources.claims.request,ports.name,restartPolicyRules}}",
        "Pod spec.containers.restartPolicy",
        "Pod spec.{ephemeralContainers,restartPolicy,terminationGracePeriodSeconds,activeDeadlineSeconds,dnsPolicy}",
        "Pod spec.{serviceAccountName,serviceAccount,automountServiceAccountToken,hostPID,hostIPC,securityContext}",
        "Pod spec.{shareProcessNamespace,imagePullSecrets,hostname,subdomain,hostAliases,dnsConfig,readinessGates}",
        "Pod spec.{enableServiceLinks,setHostnameAsFQDN,os,hostnameOverride,resources.claims}",
        "Pod spec.volumes.{name,azureFile,cephfs,configMap,downwardAPI,emptyDir,fc,flexVolume,flocker,gitRepo}",
        "Pod spec.volumes.{glusterfs,hostPath,image.pullPolicy,nfs,photonPersistentDisk,projected,quobyte,scaleIO}",
        "Pod spec.volumes.{secret,storageos}",
        "Pod status",
        "{PodGroup,CompositePodGroup,Workload,PriorityClass} metadata",
        "PriorityClass description",
        "PodGroup spec.{podGroupTemplateRef,schedulingPolicy.basic,disruptionMode,priorityClassName,priority}",
        "PodGroup status.conditions",
        "Workload spec.{controllerRef,podGroupTemplates}",
    ),
)
