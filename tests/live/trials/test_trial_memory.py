"""Batch after batch, a replica needs no more memory than at the beginning."""

from __future__ import annotations

import re
import time
from itertools import count
from pathlib import Path
from urllib.request import urlopen

import pytest

from control_plane import _free_ports
from dralloc.live.snapshot import Refused, key_of
from live.batch.test_batch_live import account
from live.trials.clusters import crowd, rows_of_gpus
from live.trials.planes import planes, say
from live.trials.replicas import Look, Replicas
from live_plane import KINDS, trials

BATCHES = trials(1000)
MOST = 300 << 20
"""Bytes."""
TOGETHER = 3
"""Pods that come at a time."""


def test_batches_leave_nothing_behind(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (folder := tmp_path / "plane").mkdir()
    with (
        planes(folder, "kube-scheduler", rules=False) as plane,
        plane.live.objects() as (server, objects),
    ):
        plane.begin(rows_of_gpus(12, 4))
        (port,) = _free_ports(1)
        options = (
            "--interval", "0.3", "--at-least", "1", "--port", str(port), "--settle", "0", "--watch", "5",
            "--probe", "dralloc-system",
        )  # fmt: skip
        replicas = Replicas(
            account(plane.live, root, tmp_path), options, tmp_path
        )
        replicas.start()
        look, sizes = Look(objects), list[int]()
        try:
            for turn in count():
                plane.live.add(
                    crowd(
                        f"t{turn}-{pod_index}" for pod_index in range(TOGETHER)
                    )
                )
                for pod in look.of("Pod"):
                    if (
                        pod["spec"].get("nodeName")
                        and pod["metadata"]["name"][0] == "t"
                    ):
                        path = objects.path(KINDS["Pod"], key_of(pod))
                        try:
                            server.wire.send(
                                "DELETE", path, {}, {"gracePeriodSeconds": 0}
                            )
                        except Refused:
                            continue
                done, size, failed = figures(port)
                if done >= len(sizes) * max(BATCHES // 20, 1):
                    sizes.append(size)
                    say(f"{done} batches, {failed} failed: {size >> 20} MB")
                if done >= BATCHES:
                    break
                time.sleep(0.2)
            assert max(sizes) < MOST
            assert failed == 0
            assert replicas.ended == []
        finally:
            replicas.stop()
        log = replicas.log("replica-1")
        placed = len(re.findall(r"[1-9]\d* claims? of", log))
        assert placed > BATCHES / 2
        say(f"{placed} batches with claims; most: {max(sizes) >> 20} MB")


def figures(port: int) -> tuple[int, int, int]:
    """How many batches were done, the bytes of the process, and how many batches failed."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except OSError:
        return 0, 0, 0
    values = dict(re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE))
    done = float(values['dralloc_batches_total{result="done"}'])
    failed = float(values['dralloc_batches_total{result="failed"}'])
    return (
        int(done),
        int(float(values["process_resident_memory_bytes"])),
        int(failed),
    )
