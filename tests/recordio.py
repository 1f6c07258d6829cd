"""A writer of RecordIO-protobuf, byte by byte from the published formats, independent of the reader."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FIELDS = {"f": 2, "d": 3, "i": 7}
"""The field of a Value for float32, float64 and int32 tensors."""


def varint(number: int) -> bytes:
    number %= 1 << 64
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(
    values: Sequence[float], kind: str = "f", keys: Sequence[int] = (), shape: Sequence[int] = ()
) -> bytes:
    if kind == "i":
        numbers = b"".join(varint(int(value)) for value in values)
    else:
        numbers = struct.pack(f"<{len(values)}{kind}", *values)
    packed = [numbers, *(b"".join(map(varint, each)) for each in (keys, shape))]
    body = b"".join(field(number, content) for number, content in enumerate(packed, 1) if content)
    return field(FIELDS[kind], body)


def record(features: bytes, label: bytes, **labels: bytes) -> bytes:
    entries = {"values": label, **labels}
    return field(1, field(1, b"values") + field(2, features)) + b"".join(
        field(2, field(1, key.encode()) + field(2, value)) for key, value in entries.items()
    )


def framed(payloads: Iterable[bytes], part_bytes: int = 1 << 28) -> bytes:
    data = b""
    for payload in payloads:
        parts = [payload[start : start + part_bytes] for start in range(0, len(payload), part_bytes)] or [b""]
        for index, part in enumerate(parts):
            kind = 0 if len(parts) == 1 else 1 if index == 0 else 3 if index == len(parts) - 1 else 2
            data += struct.pack("<II", 0xCED7230A, kind << 29 | len(part)) + part + b"\0" * (-len(part) % 4)
    return data
