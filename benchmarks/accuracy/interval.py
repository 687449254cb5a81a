"""A share, and how far it can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z = 1.959963984540054
"""Two-sided 95 % of the normal distribution."""


@dataclass(frozen=True)
class Share:
    """`hits` out of `total`."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        """The share itself; 1 out of nothing."""
        return self.hits / self.total if self.total else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval: what the share may be for other statements of the same kind."""
        if not self.total:
            return 0.0, 1.0
        n, p = self.total, self.value
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        reach = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - reach), min(1.0, middle + reach)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits}/{self.total} = {self.value:.1%} ({low:.1%} to {high:.1%})"
