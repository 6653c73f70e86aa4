"""Answers, what they say of themselves, and how they look: text, JSON, HTML and pictures."""

__all__: list[str] = []
