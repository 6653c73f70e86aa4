"""Damaged files end in an answer, in findings or in one error, within little time and memory.

A few hundred of them are tried; ``DRALLOC_FUZZ=20000`` tries so many, ``DRALLOC_FUZZ=5000:10000`` a part of them.
"""

from __future__ import annotations

import os

from conftest import ROOT
from examples import examples
from fuzz.mutations import mutated, read_corpus
from fuzz.trials import failures

CORPUS = read_corpus(ROOT, ROOT.parent / "shared" / "data")


def test_damaged_files() -> None:
    first, _, last = os.environ.get(
        "DRALLOC_FUZZ", str(examples(200))
    ).rpartition(":")
    failed_trials = failures(range(int(first or 0), int(last)), CORPUS)
    assert [
        f"seed {trial.seed}: {trial.command}: {trial.what[-2000:]}"
        for trial in failed_trials
    ] == []


def test_a_seed_gives_the_same_file_every_time() -> None:
    assert [mutated(seed, CORPUS) for seed in range(50)] == [
        mutated(seed, CORPUS) for seed in range(50)
    ]
