"""Reading ahead: the next item is fetched while the last one is used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def ahead[T](items: Iterator[T]) -> Iterator[T]:
    """Yield `items`, fetching the next one in a thread: for sources that wait on a disk or a network."""
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as thread:
        coming = thread.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]
