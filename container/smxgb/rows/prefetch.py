"""Prefetch: the next item is fetched while the last one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def prefetched[T](items: Iterator[T]) -> Generator[T]:
    """Yield `items`, fetching the next one in a thread: for sources that wait on a disk or a network.

    Whatever the end, `items` is closed if it is a generator, and so are the files it has open.
    """
    end = object()
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as thread:
            coming = thread.submit(next, items, end)
            while (item := coming.result()) is not end:
                coming = thread.submit(next, items, end)
                yield item  # type: ignore[misc]
    finally:
        if isinstance(items, Generator):
            items.close()


def in_order[*Ts, R](
    work: Callable[[*Ts], R], items: Iterator[tuple[*Ts]], threads: int, name: str = "parse"
) -> Iterator[R]:
    """Yield the results of `work` for `items` in their order; at most `threads` + 2 items are in work."""
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    coming = prefetched(items)
    try:
        for item in coming:
            waiting.append(pool.submit(work, *item))
            if len(waiting) > threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        coming.close()
