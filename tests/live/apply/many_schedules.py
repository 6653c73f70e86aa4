"""Very many schedules, in repeatable parts: ``python -m live.apply.many_schedules SCHEDULES [FIRST_SEED]``."""

from __future__ import annotations

import sys
import time
import traceback

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from live.apply.remembered import judged, planned, viewed
from live.apply.test_apply_schedules import Schedules

PART = 1000
"""Schedules of one seed."""


def main(schedules: int, first: int = 0) -> int:
    """Run them, and say after each part how it went; how many parts failed."""
    failed = 0
    begun = time.monotonic()
    for part in range(first, first + -(-schedules // PART)):
        kept = settings(
            max_examples=PART,
            stateful_step_count=4,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(
                seed(part)(type("Seeded", (Schedules,), {})), settings=kept
            )
            how = "passed"
        except Exception:
            failed += 1
            how = f"FAILED\n{traceback.format_exc()}"
        seen = ", ".join(
            f"{one.__name__} {one.cache_info().misses}"
            for one in (viewed, planned, judged)
        )
        total = (part - first + 1) * PART
        sys.stdout.write(
            f"{time.monotonic() - begun:.0f} s: {total} schedules, seed {part} {how} ({seen} so far)\n"
        )
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
