"""Very many schedules, each drawn by its own seed: ``python -m live.apply.many_schedules SCHEDULES [FIRST_SEED]``."""

from __future__ import annotations

import sys
import time
import traceback
from random import Random

from dralloc.objects.choices import Mode
from live.apply.remembered import judged, planned, viewed
from live.apply.schedules import Setting, World

PART = 1000
"""Schedules after which it is said how it goes."""
STEPS = 200
"""More than a run has that nobody disturbs."""
RULES = ("apply", "apply", "rollback", "meanwhile", "others go on")


def setting_of(random: Random) -> Setting:
    """A world to begin with: one of three kinds of clusters, with a scheduler that is quick or lags."""
    serves, honours = random.choice(
        [(True, True), (True, False), (False, True)]
    )
    return Setting(
        gang=random.random() < 0.5,
        mode=random.choice([Mode.FIRST_FIT, Mode.FIRST_FIT, Mode.OPTIMAL]),
        node_taints=not serves,
        knows_rules=honours,
        lag=random.choice([0, 0, 2]),
    )


def schedule(seed: int) -> World:
    """A run that is disturbed, and up to four things after it; then everybody goes on with what was ended.

    Raises
    ------
    AssertionError
        Something is allocated twice, lost, left fenced, or otherwise than was said.
    """
    random = Random(seed)
    world = setting_of(random).world()
    names = sorted(world.actions)
    meanwhile = [
        name
        for name in names
        if name.partition(" ")[0] not in ("killed", "refused", "lost")
    ]
    rules = ["apply", *random.choices(RULES, k=random.randrange(5))]
    for rule in rules:
        count = random.randrange(7)
        agenda = {
            random.randrange(STEPS): world.actions[random.choice(names)]
            for _ in range(count)
        }
        match rule:
            case "apply":
                world.apply(agenda)
            case "rollback":
                world.rollback(agenda)
            case "meanwhile":
                world.actions[random.choice(meanwhile)]()
            case "others go on":
                for journal in world.rivals:
                    world.apply({}, journal)
        world.check()
    world.end()
    world.check()
    assert world.fences == {}
    return world


def main(schedules: int, first: int = 0) -> int:
    """Try them, and say after each part how it went; how many failed."""
    failed = 0
    begun = time.monotonic()
    for seed in range(first, first + schedules):
        try:
            schedule(seed)
        except Exception:
            failed += 1
            sys.stdout.write(f"seed {seed}\n{traceback.format_exc()}\n")
        if (seed + 1 - first) % PART == 0:
            seen = ", ".join(
                f"{function.__name__} {function.cache_info().misses}"
                for function in (viewed, planned, judged)
            )
            sys.stdout.write(
                f"{time.monotonic() - begun:.0f} s: {seed + 1 - first} schedules, {failed} failed ({seen} so far)\n"
            )
            sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(min(1, main(*map(int, sys.argv[1:]))))
