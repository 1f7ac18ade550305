"""What a replica knows of how far its channels are, over all keys and key by key."""

from __future__ import annotations

from typing import Any

from actors.interval_join.payloads import BEGINNING

_FORGET_FROM = 64
"""Keys from which on it is worth looking for some to forget."""


class Watermarks:
    """Per channel the greatest watermark heard, and per key those heard of that key alone.

    A watermark of a channel holds for each of its keys, so a key is as far on a channel as the
    greater of the two, and over all channels as far as the least. The paper lets a replica's
    outgoing watermark be the least over the keys it has seen; a key that it has not seen yet may be
    behind those, so here it is the least over the channels, which holds for every key.

    Attributes
    ----------
    backward
        Watermarks of channels that were behind an earlier one. (An emitter that holds back a tuple
        which is late already promises less than it has promised before.)
    """

    def __init__(self, channels: int) -> None:
        self._channels = [BEGINNING] * channels
        self._keys: dict[int, list[int]] = {}
        self._forget_at = _FORGET_FROM
        self.backward = 0

    @property
    def low(self) -> int:
        """The least over the channels: no tuple of any key that is yet to come is older."""
        return min(self._channels)

    def of(self, key: int) -> int:
        """Return the watermark of a key: no tuple of it that is yet to come is older."""
        heard = self._keys.get(key)
        if heard is None:
            return self.low
        return min(map(max, heard, self._channels))

    def advance(self, channel: int, watermark: int) -> None:
        """Take a channel's watermark; an older one is counted, and changes nothing."""
        self.backward += watermark < self._channels[channel]
        self._channels[channel] = max(self._channels[channel], watermark)
        if len(self._keys) >= self._forget_at:
            self._forget()

    def advance_key(self, channel: int, key: int, watermark: int) -> None:
        """Take a channel's watermark of one key."""
        heard = self._keys.setdefault(key, [BEGINNING] * len(self._channels))
        heard[channel] = max(heard[channel], watermark)

    def snapshot(self) -> dict[str, Any]:
        """Return all watermarks as plain data."""
        return {
            "channels": list(self._channels),
            "keys": [[key, *heard] for key, heard in self._keys.items()],
            "forget_at": self._forget_at,
            "backward": self.backward,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._channels = list(state["channels"])
        self._keys = {key: heard for key, *heard in state["keys"]}
        self._forget_at = state["forget_at"]
        self.backward = state["backward"]

    def _forget(self) -> None:
        """Drop keys of which no more is known than of their channels: nothing depends on them."""
        self._keys = {
            key: heard
            for key, heard in self._keys.items()
            if any(own > all_ for own, all_ in zip(heard, self._channels, strict=True))
        }
        self._forget_at = max(_FORGET_FROM, 2 * len(self._keys))
