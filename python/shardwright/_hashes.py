"""Hashes of tensors, by name."""


from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional
    Base = Dict[str, Optional[str]]
else:
    Base = dict


class Hashes(Base):
    """Name to hash; None of a tensor that has none."""

    def __init__(self, hashes: Any, kinds: Any = (), total: Optional[str] = None) -> None:
        super().__init__(hashes)
        self._kinds, self._total = dict(kinds), total

    @property
    def total(self) -> Optional[str]:
        """The one hash of all tensors. That of live tensors needs the package xxhash."""
        if self._total is None and self and all(self.values()):
            import xxhash
            lines = sorted(f"{name}\0{dtype}\0[{', '.join(map(str, shape))}]\0{self[name]}\n".encode()
                           for name, (dtype, shape) in self._kinds.items())
            self._total = xxhash.xxh3_128_hexdigest(b"".join(lines))
        return self._total
