"""What can happen to a run: it is killed, refused, not answered; others allocate, delete, publish, apply meanwhile.

The scheduler beside it has what was found on real ones: it hears of things late, takes unused allocations back, and in
some releases is kept away by no DeviceTaintRule, and dies of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from dralloc.live.apply import ApplyOutcome, ApplyRun, WriteJournal
from dralloc.live.apply.choice import SchedulerProbe, fence_for
from dralloc.live.apply.fence import fence_of, run_of
from dralloc.live.apply.journal import JournalStep
from dralloc.live.apply.marks import FINALIZER
from dralloc.live.apply.pods import gates_of
from dralloc.live.snapshot import Refused, Unanswered, Wire
from dralloc.objects.choices import FenceKind, Mode
from dralloc.objects.errors import ApplyError, SnapshotError
from live.apply.remembered import RememberedQuestion, RememberedRun
from live.apply.runs import gated, run_on
from simulated import Simulated
from wire import (
    DRIVER,
    Json,
    claim,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
NAMES = "abcd"
LONG_AGO = "-20200101t000000z"
"""The end of the name of a run whose time is over."""
RULES_ON = "DRADeviceTaintRules=true"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNDOING = (
    JournalStep.GIVE_BACK,
    JournalStep.RETRACT,
    JournalStep.LIFT,
    JournalStep.END,
)
"""What is done although it cannot be noted."""


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, not even what ends it."""


@dataclass
class Client:
    """One process that speaks with the server. ``agenda``: what happens at which of its steps.

    A list is one step; any other request is two, so that it can be served or not when something happens. What the
    server offers is asked for in no step.
    """

    server: Wire
    agenda: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    host: str = "http://simulated"
    steps: int = 0
    dead: bool = False
    outage: int = 0
    full: bool = False

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        if path == "/version" or _is_discovery(path):
            return self.server.send(method, path, query, body)
        self.step()
        answer = self.server.send(method, path, query, body)
        if "items" not in answer:
            self.step()
        return answer

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        return self.server.stream(path, query)

    def renew(self) -> None:
        """Nothing is limited."""

    def step(self) -> None:
        """Let happen what is due."""
        if self.dead:
            raise Killed
        self.steps += 1
        self.agenda.get(self.steps - 1, lambda: None)()
        if self.outage:
            self.outage -= 1
            raise SnapshotError("cannot be reached")

    def kill(self) -> None:
        self.dead = True
        raise Killed


def _is_discovery(path: str) -> bool:
    return path.startswith("/apis") and path.count("/") < 4


class Journalled(WriteJournal):
    """A journal that outlives its client; each entry is a step in which the client can be killed, before or after."""

    client: Client

    def kill(self) -> None:
        """Kill the process that has it now."""
        self.client.kill()

    def fill(self) -> None:
        """From now on the disk is full, until another process begins."""
        self.client.full = True

    def cut_off(self) -> None:
        """The server is away, for longer than a request is repeated."""
        self.client.outage = 9

    def add(self, step: JournalStep, **about: Any) -> None:
        self._step()
        if not self.client.full:
            super().add(step, **about)
        elif step not in UNDOING and not self.is_undone:
            raise ApplyError("cannot be written: No space left on device")
        self._step()

    def _step(self) -> None:
        # Only a server refuses, or is away.
        with suppress(Refused, Unanswered, SnapshotError):
            self.client.step()


def unanswered() -> None:
    raise Unanswered("no answer")


def refusal(status: int) -> Callable[[], None]:
    def refuse() -> None:
        raise Refused(status, "said the server")

    return refuse


@dataclass
class Scheduler:
    """kube-scheduler: it allocates claims, binds pods, and takes claims back, with a view of the cluster that lags.

    As a rival it allocates claims one by one, also those of pods that wait for dralloc. Pods whose claims are allocated
    it binds where they fit; where they fit nowhere, it takes claims back (``PostFilter`` of DynamicResources).

    Parameters
    ----------
    knows_rules
        Whether DeviceTaintRules count; in 1.36.0 to 1.36.2 they do not.
    deallocated
        The pods for which it took claims back.
    has_crashed
        Whether it panicked, as one does that does not know rules: when slices change while there is a rule.
    """

    server: Simulated
    knows_rules: bool = True
    seen: dict[str, list[Json]] = field(default_factory=dict)
    begun: list[tuple[Json, Json]] = field(default_factory=list)
    deallocated: list[str] = field(default_factory=list)
    has_crashed: bool = False

    def look(self) -> None:
        """Hear of everything that happened."""
        slices_before = self.seen.get("resourceslices")
        plurals = (
            "resourceclaims",
            "resourceslices",
            "devicetaintrules",
            "nodes",
            "pods",
        )
        self.seen = {plural: self.server.of(plural) for plural in plurals}
        has_new_slices = self.seen["resourceslices"] != slices_before
        if self.seen["devicetaintrules"] and has_new_slices:
            self.has_crashed |= not self.knows_rules

    @property
    def claims(self) -> dict[str, Json]:
        """The claims as far as is known, by name."""
        return {
            claim["metadata"]["name"]: claim
            for claim in self.seen["resourceclaims"]
        }

    def decide(self) -> None:
        """Choose a device for the first claim that has none, as far as is known."""
        rules = self.seen["devicetaintrules"] if self.knows_rules else []
        fenced = {rule["spec"]["deviceSelector"]["pool"] for rule in rules}
        used = {
            device
            for claim in self.claims.values()
            for device in devices_of(claim)
        }
        used |= {
            (entry["pool"], entry["device"])
            for _, allocation in self.begun
            for entry in allocation["devices"]["results"]
        }
        wanting = [
            claim
            for claim in self.claims.values()
            if not (claim.get("status") or {}).get("allocation")
        ]
        begun = {claim["metadata"]["name"] for claim, _ in self.begun}
        closed = {
            node["metadata"]["name"]
            for node in self.seen["nodes"]
            if is_cordoned(node) or taints_of(node)
        }
        free = [
            (pool_slice["spec"]["pool"]["name"], device["name"])
            for pool_slice in self.seen["resourceslices"]
            for device in pool_slice["spec"]["devices"]
            if pool_slice["spec"]["pool"]["name"] not in fenced
            and pool_slice["spec"]["nodeName"] not in closed
        ]
        for claim_object in wanting:
            for pool, device in free:
                if (
                    claim_object["metadata"]["name"] not in begun
                    and (pool, device) not in used
                ):
                    result = {
                        "request": "gpu",
                        "driver": DRIVER,
                        "pool": pool,
                        "device": device,
                    }
                    self.begun.append(
                        (claim_object, {"devices": {"results": [result]}})
                    )
                    return

    def bind(self) -> None:
        """Write what was decided, on the state that it was decided on."""
        for claim_object, allocation in self.begun:
            metadata = claim_object["metadata"]
            seen = {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            }
            path = f"{CLAIMS}/{metadata['name']}"
            with suppress(Refused):
                finalizers = sorted(
                    {*metadata.get("finalizers", ()), FINALIZER}
                )
                now = self.server.send(
                    "PATCH",
                    path,
                    {},
                    {"metadata": {**seen, "finalizers": finalizers}},
                )
                seen = {"resourceVersion": now["metadata"]["resourceVersion"]}
                user = {
                    "resource": "pods",
                    "name": "rival",
                    "uid": f"of-{metadata['name']}",
                }
                status = {"allocation": allocation, "reservedFor": [user]}
                self.server.send(
                    "PATCH",
                    f"{path}/status",
                    {},
                    {"metadata": seen, "status": status},
                )
        self.begun = []

    def schedule(self) -> None:
        """Try each pod without gates whose claims are allocated, as far as is known."""
        for waiting in self.seen["pods"]:
            spec = waiting["spec"]
            names = [
                entry["resourceClaimName"]
                for entry in spec.get("resourceClaims", ())
            ]
            claims = [
                self.claims[name] for name in names if name in self.claims
            ]
            may_go = not spec.get("nodeName") and not spec.get(
                "schedulingGates"
            )
            if (
                may_go
                and len(claims) == len(names)
                and all(map(devices_of, claims))
            ):
                with suppress(Refused):
                    self._try(waiting, claims)

    def _try(self, waiting: Json, claims: list[Json]) -> None:
        unavailable: list[Json] = []
        for node_object in self.seen["nodes"]:
            name = node_object["metadata"]["name"]
            if not comes_to(waiting, node_object):
                continue
            away = [
                claim for claim in claims if nodes_of(claim) not in (None, name)
            ]
            unavailable += away
            if not away:
                self._reserve(waiting, claims)
                path = f"/api/v1/namespaces/default/pods/{waiting['metadata']['name']}/binding"
                self.server.send("POST", path, {}, {"target": {"name": name}})
                return
        self._tell(waiting)
        for claim_object in (
            claim_object
            for claim_object in unavailable
            if not claim_object["status"].get("reservedFor")
        ):
            metadata = {
                key: claim_object["metadata"][key]
                for key in ("uid", "resourceVersion")
            }
            change = {"metadata": metadata, "status": {"allocation": None}}
            self.server.send(
                "PATCH",
                f"{CLAIMS}/{claim_object['metadata']['name']}/status",
                {},
                change,
            )
            self.deallocated.append(waiting["metadata"]["name"])
            return

    def _tell(self, waiting: Json) -> None:
        """Say what keeps a pod from the nodes that it names, in upstream's words and order."""
        named = [node for node in self.seen["nodes"] if is_named(waiting, node)]
        tainted = [node for node in named if not tolerates_all(waiting, node)]
        why = (
            "had untolerated taint(s)"
            if tainted
            else "didn't match Pod's node affinity/selector"
        )
        message = f"0/{len(self.seen['nodes'])} nodes are available: {len(named)} node(s) {why}."
        path = f"/api/v1/namespaces/{waiting['metadata']['namespace']}/pods/{waiting['metadata']['name']}/status"
        others = [
            entry
            for entry in waiting.get("status", {}).get("conditions", ())
            if entry["type"] != "PodScheduled"
        ]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        self.server.send(
            "PATCH", path, {}, {"status": {"conditions": [*others, condition]}}
        )

    def _reserve(self, pod: Json, claims: list[Json]) -> None:
        user = {
            "resource": "pods",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        for claim_object in claims:
            path = f"{CLAIMS}/{claim_object['metadata']['name']}"
            reserved = (
                self.server.send("GET", path)
                .get("status", {})
                .get("reservedFor", [])
            )
            self.server.send(
                "PATCH",
                f"{path}/status",
                {},
                {"status": {"reservedFor": [*reserved, user]}},
            )

    def settle(self) -> None:
        """Write what was begun, hear of everything, and try the pods that wait."""
        self.bind()
        self.look()
        self.schedule()
        self.look()


def comes_to(pod: Json, node: Json) -> bool:
    """Whether a pod's affinity and tolerations let it come to a node."""
    return (
        is_labelled(pod, node)
        and is_named(pod, node)
        and not is_cordoned(node)
        and tolerates_all(pod, node)
    )


def terms_of(pod: Json) -> list[Json]:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return list(affinity.get(REQUIRED, {}).get("nodeSelectorTerms", [{}]))


def is_named(pod: Json, node: Json) -> bool:
    name = node["metadata"]["name"]
    return any(
        all(
            name in requirement["values"]
            for requirement in term.get("matchFields", ())
        )
        for term in terms_of(pod)
    )


def is_labelled(pod: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels", {})
    return any(
        all(
            requirement["key"] in labels
            for requirement in term.get("matchExpressions", ())
        )
        for term in terms_of(pod)
    )


def tolerates_all(pod: Json, node: Json) -> bool:
    tolerated = [
        (toleration.get("key"), toleration.get("value"))
        for toleration in pod["spec"].get("tolerations", ())
    ]
    return all(
        (taint["key"], taint["value"]) in tolerated for taint in taints_of(node)
    )


def nodes_of(claim: Json) -> str | None:
    """The node where an allocated claim can be used; None if everywhere."""
    terms = (
        claim["status"]["allocation"]
        .get("nodeSelector", {})
        .get("nodeSelectorTerms", [])
    )
    return str(terms[0]["matchFields"][0]["values"][0]) if terms else None


def taints_of(node: Json) -> list[Json]:
    return list(node.get("spec", {}).get("taints") or ())


def devices_of(claim: Json) -> list[tuple[str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {
        "devices": {}
    }
    return [
        (result["pool"], result["device"])
        for result in allocation["devices"].get("results", ())
    ]


def is_cordoned(node: Json) -> bool:
    return bool(node.get("spec", {}).get("unschedulable"))


def crowd(devices: int, *pods: Json) -> list[Json]:
    """Two nodes with some devices each, four claims, and pods that share some of them."""
    slices = (
        resource_slice(
            gpus(devices),
            name=f"slice-{node_index}",
            pool=f"pool-{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index in (0, 1)
    )
    claims = (claim(name, request()) for name in NAMES)
    return [
        node("node-0"),
        node("node-1"),
        device_class(),
        *slices,
        *claims,
        *pods,
    ]


def gang() -> list[Json]:
    """A group that runs whole or not, whose pods have a claim in common."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "both", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    of_group = {"schedulingGroup": {"podGroupName": "both"}}
    return crowd(
        3,
        group,
        gated("p", "a", "b", **of_group),
        gated("q", "b", "c", **of_group),
    )


def scheduler_pod(tag: str, *flags: str) -> Json:
    """kube-scheduler as kubeadm runs it."""
    scheduler = pod("kube-scheduler-a")
    scheduler["metadata"]["namespace"] = "kube-system"
    container = {
        "name": "c",
        "image": f"images.example:5000/kube-scheduler:{tag}",
        "command": ["kube-scheduler", *flags],
    }
    return {
        **scheduler,
        "spec": {"containers": [container], "nodeName": "master"},
    }


@dataclass(frozen=True)
class Setting:
    """What a world begins with.

    Parameters
    ----------
    gang
        Whether the pods are a group that runs whole or not.
    mode
        How is planned.
    node_taints
        Whether the server serves no DeviceTaintRules, so that nodes are tainted.
    knows_rules
        Whether the scheduler honours them; a run must see that it does not.
    lag
        How many waits of a run pass before the scheduler hears of anything.
    """

    gang: bool = False
    mode: Mode = Mode.FIRST_FIT
    node_taints: bool = False
    knows_rules: bool = True
    lag: int = 0

    def world(self) -> World:
        return World(_begun(self).copy(), self)


@cache
def _begun(setting: Setting) -> Simulated:
    server = Simulated(
        without=frozenset({"devicetaintrules"} if setting.node_taints else ())
    )
    if not setting.knows_rules:
        server.version = "v1.36.2"
        server.add(scheduler_pod("v1.36.2", "--feature-gates=" + RULES_ON))
    pods = gated("p", "a", "b"), pod("q", "c")
    server.add(*(gang() if setting.gang else crowd(2, *pods)))
    return server


@dataclass
class World:
    """A server, a rival scheduler, and runs with their journals, which may be killed and go on."""

    server: Simulated
    setting: Setting
    journal: Journalled = field(default_factory=Journalled)
    rivals: list[Journalled] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    cordoned: set[str] = field(default_factory=set)
    runs: int = 0
    pauses: int = 0
    misplaced: list[str] = field(default_factory=list)
    released_by_others: bool = False

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.server, self.setting.knows_rules)
        self.scheduler.look()

    @property
    def actions(self) -> Mapping[str, Callable[[], None]]:
        """What can happen between two steps of a run."""
        return {
            "killed": self.journal.kill,
            "decide": self.scheduler.decide,
            "bind": self.scheduler.bind,
            "look": self.scheduler.look,
            "schedule": self.scheduler.schedule,
            **{
                f"rival {step}": partial(self.rival_run, step)
                for step in (None, 20, 40, 50, 60, 80)
            },
            **{
                f"gone {step}": partial(self.rival_run, step, LONG_AGO)
                for step in (40, 60, 80)
            },
            **{
                f"refused {status}": refusal(status)
                for status in (403, 409, 410, 422, 429, 500)
            },
            "lost": unanswered,
            "away": self.journal.cut_off,
            "disk full": self.journal.fill,
            "delete a": partial(self.delete_claim, "a"),
            "delete d": partial(self.delete_claim, "d"),
            "delete p": partial(self.delete_pod, "p"),
            "make a": partial(self.make_claim, "a"),
            "release p": partial(self.release, "p"),
            "touch b": partial(self.touch, "b"),
            "touch node": self.touch_node,
            "cordon": partial(self.cordon, "node-1"),
            "publish": partial(self.publish, "pool-0"),
        }

    def run(
        self,
        journal: Journalled,
        agenda: Mapping[int, Callable[[], None]],
        end: str = "",
    ) -> ApplyRun:
        """A run as a new process, which goes on if the journal says so; ``end``: of its name."""
        client = journal.client = Client(self.server, agenda)
        journal.is_undone = False
        self.runs += 1
        name = f"run-{self.runs}{end}"
        run = run_on(
            client,
            name,
            RememberedRun,
            journal=journal,
            question=RememberedQuestion(self.setting.mode),
            pause=self.pause,
            watch=1,
        )
        kinds = [kind.plural for kind in run.objects.versions]
        run.source = partial(self._seen, client, run.source, kinds)
        run.fence = (
            fence_of(journal, run.objects, name)
            if journal.unfinished
            else fence_for(FenceKind.AUTO, run.objects, name).fence
        )
        run.probe = SchedulerProbe(run.objects, "default", self.pause)
        return run

    def _seen(
        self,
        client: Client,
        source: Callable[[], Iterable[Json]],
        kinds: list[str],
    ) -> Iterable[Json]:
        """What a client sees that reads every kind; without requests, where nothing happens meanwhile."""
        steps = range(client.steps, client.steps + len(kinds))
        is_disturbed = not client.agenda.keys().isdisjoint(steps)
        if client.outage or client.dead or is_disturbed:
            return source()
        client.steps = steps.stop
        return [
            api_object for kind in kinds for api_object in self.server.of(kind)
        ]

    def pause(self, _seconds: float) -> None:
        """Time passes, in which the scheduler writes what it had begun, and hears of news sooner or later."""
        self.pauses += 1
        if self.pauses % (self.setting.lag + 1):
            self.scheduler.bind()
        else:
            self.scheduler.settle()

    def apply(
        self,
        agenda: Mapping[int, Callable[[], None]],
        journal: Journalled | None = None,
        end: str = "",
    ) -> int:
        """A run, or going on with one that was killed; returns its steps."""
        mine = journal or self.journal
        self._ending(lambda: self._applied(mine, agenda, end))
        return mine.client.steps

    def _applied(
        self,
        journal: Journalled,
        agenda: Mapping[int, Callable[[], None]],
        end: str,
    ) -> None:
        run = self.run(journal, agenda, end)
        outcome = (
            run.resume() if journal.unfinished else run.write(run.plan()[1])
        )
        if not outcome.failed:
            self.misplaced += self._misplaced(outcome)

    def _misplaced(self, outcome: ApplyOutcome) -> Iterator[str]:
        """Yield the pods of a run that says that all is well, and that are not bound as planned."""
        pods = {pod["metadata"]["uid"]: pod for pod in self.server.of("pods")}
        for unit in outcome.units:
            for demand in unit.demands:
                if demand.pod in pods:
                    where = pods[demand.pod]["spec"].get("nodeName")
                    if where is None or where != (demand.node or where):
                        yield demand.key.name

    def rollback(self, agenda: Mapping[int, Callable[[], None]]) -> None:
        if self.journal.unfinished:
            self._ending(lambda: self.run(self.journal, agenda).rollback())

    def rival_run(self, killed: int | None = None, end: str = "") -> None:
        """Somebody else applies, from the beginning to the end, or until it is killed."""
        journal = Journalled()
        self.rivals.append(journal)
        agenda = {} if killed is None else {killed: journal.kill}
        self.apply(agenda, journal, end)

    def end(self) -> None:
        """Everybody goes on with what was killed."""
        for journal in (self.journal, *self.rivals):
            if journal.unfinished:
                self.apply({}, journal)

    @staticmethod
    def _ending(work: Callable[[], object]) -> None:
        """A process ends as it wants: done, killed, or with an error that names what to do."""
        with suppress(Killed, ApplyError, SnapshotError, Refused):
            work()

    def delete_claim(self, name: str) -> None:
        with suppress(Refused):
            self.server.send("DELETE", f"{CLAIMS}/{name}")
            self.deleted.add(name)

    def make_claim(self, name: str) -> None:
        """Another claim takes the name of one that is gone."""
        with suppress(Refused):
            self.server.send("POST", CLAIMS, {}, claim(name, request()))

    def delete_pod(self, name: str) -> None:
        with suppress(Refused):
            self.server.send(
                "DELETE", f"/api/v1/namespaces/default/pods/{name}"
            )

    def release(self, name: str) -> None:
        """Somebody else takes a pod's gates."""
        with suppress(Refused):
            self.server.send(
                "PATCH",
                f"/api/v1/namespaces/default/pods/{name}",
                {},
                {"spec": {"schedulingGates": []}},
            )
            self.released_by_others = True

    def touch(self, name: str) -> None:
        """Change what does not matter."""
        with suppress(Refused):
            labels = {"touched": str(self.server.revision % 2)}
            self.server.send(
                "PATCH",
                f"{CLAIMS}/{name}",
                {},
                {"metadata": {"labels": labels}},
            )

    def touch_node(self) -> None:
        """A kubelet says that it is there."""
        status = {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": f"Heard{self.server.revision % 2}",
                }
            ]
        }
        self.server.send(
            "PATCH", "/api/v1/nodes/node-0/status", {}, {"status": status}
        )

    def cordon(self, name: str) -> None:
        """Somebody cordons a node, if it is not cordoned already."""
        if not is_cordoned(self.server.one("nodes", name, "")):
            self.server.send(
                "PATCH",
                f"/api/v1/nodes/{name}",
                {},
                {"spec": {"unschedulable": True}},
            )
            self.cordoned.add(name)

    def publish(self, pool: str) -> None:
        """A driver publishes its pool anew, without the last device."""
        for key, api_object in list(self.server.objects.items()):
            if (
                key[0] == "resourceslices"
                and api_object["spec"]["pool"]["name"] == pool
                and len(api_object["spec"]["devices"]) > 1
            ):
                spec = api_object["spec"]
                newer = {
                    **spec["pool"],
                    "generation": spec["pool"]["generation"] + 1,
                }
                changed = {
                    "spec": {
                        **spec,
                        "pool": newer,
                        "devices": spec["devices"][:-1],
                    }
                }
                self.server.send(
                    "PATCH",
                    f"/apis/resource.k8s.io/v1/resourceslices/{key[2]}",
                    {},
                    changed,
                )

    def check(self) -> None:
        """Nothing is held twice, no claim is lost, and a fence is there only for a run that has not ended."""
        claims = self.server.of("resourceclaims")
        held = Counter(
            device for claim in claims for device in devices_of(claim)
        )
        assert [device for device, count in held.items() if count > 1] == []
        assert (
            set(NAMES) - {claim["metadata"]["name"] for claim in claims}
            <= self.deleted
        )
        assert [
            claim
            for claim in claims
            if devices_of(claim)
            and FINALIZER not in claim["metadata"]["finalizers"]
        ] == []
        unfinished = {
            run
            for journal in (self.journal, *self.rivals)
            if journal.unfinished
            for run in journal.runs
        }
        assert set(self.fences.values()) <= unfinished
        assert {
            node["metadata"]["name"]
            for node in self.server.of("nodes")
            if is_cordoned(node)
        } == self.cordoned
        # Who was released by a run never loses what was planned for it.
        released = {
            entry["pod"][1]
            for journal in (self.journal, *self.rivals)
            for entry in journal.of(JournalStep.RELEASE)
        }
        if not self.released_by_others:
            assert released.isdisjoint(self.scheduler.deallocated)
            stranded = [] if unfinished else self._stranded(released)
            assert stranded == []
        assert self.misplaced == []
        if not unfinished:
            assert self.probes == []
        assert not self.scheduler.has_crashed

    def _stranded(self, released: set[str]) -> list[str]:
        """The pods that a run released, which wait without what was written for them."""
        stranded: list[str] = []
        held = {
            claim["metadata"]["name"]
            for claim in self.server.of("resourceclaims")
            if devices_of(claim)
        }
        for pod_object in self.server.of("pods"):
            spec, name = pod_object["spec"], pod_object["metadata"]["name"]
            is_waiting = not spec.get("nodeName") and not gates_of(pod_object)
            wanted = {
                entry["resourceClaimName"]
                for entry in spec.get("resourceClaims", ())
            }
            if is_waiting and name in released and wanted - held - self.deleted:
                stranded.append(name)
        return stranded

    @property
    def probes(self) -> list[str]:
        """The pods that ask the scheduler."""
        names = (pod["metadata"]["name"] for pod in self.server.of("pods"))
        return [name for name in names if name.startswith("dralloc-probe")]

    @property
    def fences(self) -> Mapping[str, str]:
        """The runs to which what is fenced belongs."""
        marked = [*self.server.of("devicetaintrules"), *self.server.of("nodes")]
        return {
            fence["metadata"]["name"]: run
            for fence in marked
            if (run := run_of(fence))
        }
