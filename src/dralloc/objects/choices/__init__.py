"""What users choose, as one object; nothing heavy, because the command line shows it before it does anything."""

from __future__ import annotations

from dralloc.objects.choices.choices import Choices, ChoiceWords, NodelessWords
from dralloc.objects.choices.options import Options, Thresholds
from dralloc.objects.choices.words import (
    MAX_SEED,
    MAX_WORKERS,
    AllocatorName,
    AnswerName,
    Backend,
    FenceKind,
    Goal,
    GoalName,
    Ignored,
    Include,
    Keep,
    KeepName,
    Mode,
    ModeName,
    ObjectiveWord,
    PolicyName,
    Priorities,
    PrioritiesName,
    chosen,
    compared,
    several,
)

__all__ = [
    "MAX_SEED",
    "MAX_WORKERS",
    "AllocatorName",
    "AnswerName",
    "Backend",
    "ChoiceWords",
    "Choices",
    "FenceKind",
    "Goal",
    "GoalName",
    "Ignored",
    "Include",
    "Keep",
    "KeepName",
    "Mode",
    "ModeName",
    "NodelessWords",
    "ObjectiveWord",
    "Options",
    "PolicyName",
    "Priorities",
    "PrioritiesName",
    "Thresholds",
    "chosen",
    "compared",
    "several",
]
