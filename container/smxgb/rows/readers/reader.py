"""What a reader is asked for, and what it gives: the same for all content types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from smxgb.job import Channel
    from smxgb.rows.batch import Batch
    from smxgb.rows.reading import ReadingSettings
    from smxgb.rows.schema import Declared


@dataclass(frozen=True)
class Request:
    """A channel to read. `like` is what `train` declares when another channel is read, else None."""

    channel: Channel
    settings: ReadingSettings
    threads: int
    like: Declared | None


@dataclass(frozen=True)
class Reader:
    """A channel of which as much was read as tells what its files hold.

    Attributes:
        declared: What the files declare of the features.
        read: Begins a pass over all rows, with the named features; see `batches`.
        expected_rows: About how many rows there are, judged by the first ones.
        is_exact: Whether there are exactly so many rows.
        can_repeat: Whether a second pass reads the files again; else there is one pass, and the rows of it
            must be kept.
        buffer_bytes: How many bytes of a file a pass holds at its most, beside a batch; 0 for what is read
            once.
    """

    declared: Declared
    read: Callable[[tuple[str, ...]], Iterator[Batch]]
    expected_rows: int
    is_exact: bool = False
    can_repeat: bool = False
    buffer_bytes: int = 0

    def batches(self, features: Collection[str] | None = None) -> Iterator[Batch]:
        """Yield all rows, in the order of files and rows.

        `features` are the names of those that the pass wants, None for all; without a name, only labels,
        weights and the like are read. Sparse rows have all their features in any case. Nothing is yielded if
        there are no rows. Raises UserError naming file, line or row, column and value of what can't be
        trained on.
        """
        names = self.declared.names or ()
        if features is not None:
            wanted = set(features)
            names = tuple(name for name in names if name in wanted)
        return self.read(names)
