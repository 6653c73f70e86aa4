"""What can happen to a run: it is killed, refused, not answered; others allocate, delete, publish, apply meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from apply.runs import run_on
from dralloc.apply import ApplyRun, MemoryJournal
from dralloc.apply.journal import JournalStep
from dralloc.errors import ApplyError, SnapshotError
from dralloc.snapshot import Refused, Unanswered, Wire
from simulated import Simulated
from wire import DRIVER, Json

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, not even what ends it."""


@dataclass
class Client:
    """One process that speaks with the server. ``agenda``: what happens at which of its steps."""

    server: Wire
    agenda: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    host: str = "http://simulated"
    steps: int = 0
    dead: bool = False

    def send(self, method: str, path: str, query: Mapping[str, str] | None = None, body: Json | None = None) -> Json:
        self.step()
        answer = self.server.send(method, path, query, body)
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

    def kill(self) -> None:
        self.dead = True
        raise Killed


class Journalled(MemoryJournal):
    """A journal that outlives its client; each entry is a step in which the client can be killed, before or after."""

    client: Client

    def kill(self) -> None:
        """Kill the process that has it now."""
        self.client.kill()

    def add(self, step: JournalStep, **about: Any) -> None:
        self._step()
        if step is JournalStep.BEGIN:
            self.entries = []
        super().add(step, **about)
        self._step()

    def _step(self) -> None:
        with suppress(Refused, Unanswered):  # only a server refuses
            self.client.step()


def unanswered() -> None:
    raise Unanswered("no answer")


def refusal(status: int) -> Callable[[], None]:
    def refuse() -> None:
        raise Refused(status, "said the server")

    return refuse


@dataclass
class Scheduler:
    """A rival that allocates claims one by one, with a view of the cluster that may be old, as upstream's does."""

    server: Simulated
    claims: dict[str, Json] = field(default_factory=dict)
    begun: list[tuple[Json, Json]] = field(default_factory=list)

    def look(self) -> None:
        """Hear of everything that happened."""
        self.claims = {one["metadata"]["name"]: one for one in self.server.of("resourceclaims")}

    def decide(self) -> None:
        """Choose a device for the first claim that has none, as far as is known."""
        fenced = {one["spec"]["deviceSelector"]["pool"] for one in self.server.of("devicetaintrules")}
        used = {device for one in self.claims.values() for device in devices_of(one)}
        used |= {
            (each["pool"], each["device"]) for _, allocation in self.begun for each in allocation["devices"]["results"]
        }
        wanting = [one for one in self.claims.values() if not (one.get("status") or {}).get("allocation")]
        begun = {claim["metadata"]["name"] for claim, _ in self.begun}
        free = [
            (one["spec"]["pool"]["name"], device["name"])
            for one in self.server.of("resourceslices")
            for device in one["spec"]["devices"]
            if one["spec"]["pool"]["name"] not in fenced
        ]
        for claim in wanting:
            for pool, device in free:
                if claim["metadata"]["name"] not in begun and (pool, device) not in used:
                    result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device}
                    self.begun.append((claim, {"devices": {"results": [result]}}))
                    return

    def bind(self) -> None:
        """Write what was decided, on the state that it was decided on."""
        for claim, allocation in self.begun:
            metadata = claim["metadata"]
            seen = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            path = f"{CLAIMS}/{metadata['name']}"
            with suppress(Refused):
                finalizers = sorted({*metadata.get("finalizers", ()), "resource.kubernetes.io/delete-protection"})
                now = self.server.send("PATCH", path, {}, {"metadata": {**seen, "finalizers": finalizers}})
                seen = {"resourceVersion": now["metadata"]["resourceVersion"]}
                user = {"resource": "pods", "name": "rival", "uid": f"of-{metadata['name']}"}
                status = {"allocation": allocation, "reservedFor": [user]}
                self.server.send("PATCH", f"{path}/status", {}, {"metadata": seen, "status": status})
        self.begun = []

    def settle(self) -> None:
        """Write what was begun, and hear of everything."""
        self.bind()
        self.look()


def devices_of(claim: Json) -> list[tuple[str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {"devices": {}}
    return [(one["pool"], one["device"]) for one in allocation["devices"].get("results", ())]


@dataclass
class World:
    """A server, a rival scheduler, and a run with its journal, which may be killed and go on."""

    server: Simulated
    journal: Journalled = field(default_factory=Journalled)
    deleted: set[str] = field(default_factory=set)
    runs: int = 0

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.server)
        self.scheduler.look()

    def run(self, agenda: Mapping[int, Callable[[], None]], *, resumed: bool = False, **options: Any) -> ApplyRun:
        """A run as a new process."""
        client = Client(self.server, agenda)
        journal = options.setdefault("journal", self.journal)
        if isinstance(journal, Journalled):
            journal.client = client
        self.runs += 1
        name = journal.run if resumed else f"run-{self.runs}"
        return run_on(client, name, pause=lambda _seconds: self.scheduler.settle(), **options)

    def apply(self, agenda: Mapping[int, Callable[[], None]]) -> int:
        """A run, or going on with one that was killed; returns its steps."""
        self._ending(lambda: self._applied(agenda))
        return self.journal.client.steps

    def _applied(self, agenda: Mapping[int, Callable[[], None]]) -> None:
        if self.journal.unfinished:
            self.run(agenda, resumed=True).resume()
        else:
            run = self.run(agenda)
            run.write(run.plan()[1])

    def rollback(self, agenda: Mapping[int, Callable[[], None]]) -> None:
        if self.journal.unfinished:
            self._ending(lambda: self.run(agenda, resumed=True).rollback())

    def rival_run(self) -> None:
        """Somebody else applies, from the beginning to the end."""
        run = self.run({}, journal=MemoryJournal())
        with suppress(ApplyError):
            run.write(run.plan()[1])

    @staticmethod
    def _ending(work: Callable[[], object]) -> None:
        """A process ends as it wants: done, killed, or with an error that names what to do."""
        with suppress(Killed, ApplyError, SnapshotError, Refused):
            work()

    def delete_claim(self, name: str) -> None:
        with suppress(Refused):
            self.server.send("DELETE", f"{CLAIMS}/{name}")
            self.deleted.add(name)

    def delete_pod(self, name: str) -> None:
        with suppress(Refused):
            self.server.send("DELETE", f"/api/v1/namespaces/default/pods/{name}")

    def touch(self, name: str) -> None:
        """Change what does not matter."""
        with suppress(Refused):
            labels = {"touched": str(self.server.revision)}
            self.server.send("PATCH", f"{CLAIMS}/{name}", {}, {"metadata": {"labels": labels}})

    def publish(self, pool: str) -> None:
        """A driver publishes its pool anew, without the last device."""
        for place, one in list(self.server.objects.items()):
            if place[0] == "resourceslices" and one["spec"]["pool"]["name"] == pool and len(one["spec"]["devices"]) > 1:
                spec = one["spec"]
                newer = {**spec["pool"], "generation": spec["pool"]["generation"] + 1}
                changed = {"spec": {**spec, "pool": newer, "devices": spec["devices"][:-1]}}
                self.server.send("PATCH", f"/apis/resource.k8s.io/v1/resourceslices/{place[2]}", {}, changed)

    def check(self) -> None:
        """Nothing is held twice, no claim is lost, and no fence is left once a run has ended."""
        held = Counter(device for one in self.server.of("resourceclaims") for device in devices_of(one))
        assert [device for device, number in held.items() if number > 1] == []
        left = {one["metadata"]["name"] for one in self.server.of("resourceclaims")}
        assert {"a", "b", "c", "d"} - left <= self.deleted
        if not self.journal.unfinished:
            assert self.server.of("devicetaintrules") == []
        for one in self.server.of("resourceclaims"):
            if devices_of(one):
                assert one["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
