"""Classes: labels that are words, or numbers that do not begin at 0, and the codes that XGBoost learns.

A channel's labels get codes as they come while it is read (`label_coder`); once those of all channels and
workers are known, the classes are settled and the codes become theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.errors import Mistakes, UserError
from smxgb.rows.categories import Coding, settled
from smxgb.rows.label_coder import NUMBER, as_word
from smxgb.settings import DISTINCT, Labels
from smxgb.wording import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt

    from smxgb.rows.batch import Batch
    from smxgb.rows.label_coder import LabelCoder
    from smxgb.rows.schema import Layout
    from smxgb.rows.store import Stored
    from smxgb.rows.summary import Summary

MOST = 100
"""At most 100 classes are believed where they are more than half of the rows."""

RARE = 10
"""Classes of one row are remarkable where the classes have 10 rows on average."""

LISTED = 10
"""At most 10 classes are named in a message."""


def with_words(summary: Summary, coder: LabelCoder | None) -> Summary:
    """Return the summary of the rows of a channel with the labels that got codes, if they did."""
    return replace(summary, classes=coder.rows) if coder else summary


def settle_classes(
    layout: Layout | None, summaries: Mapping[str, Summary], wanted: tuple[str, ...], objective: str
) -> tuple[str, ...]:
    """Return the classes in the order of their codes.

    Args:
        layout: The columns of train's files, if they have columns.
        summaries: What was seen in each channel, of all workers together.
        wanted: The setting `class_labels`: ("auto",), or all classes in their order.
        objective: The objective, of which binary ones take two classes.

    Raises:
        UserError: If there are not two classes where two are needed, or nearly as many as rows, or if the
            name of the label's column is among them.
    """
    _check_column_name(layout, summaries)
    words = list(summaries["train"].classes)
    if wanted != AUTO:
        classes = tuple(as_word(word) or word for word in wanted)
    elif all(map(NUMBER.fullmatch, words)):
        classes = tuple(sorted(words, key=float))
    else:
        classes = settled(words)
    rows = summaries["train"].rows
    if len(classes) > MOST and 2 * len(classes) > rows:
        raise UserError(
            f"the label has {len(classes):,} different values in {rows:,} rows of train, as names of rows "
            "have, "
            "and no classes: check label_column."
        )
    if objective.startswith("binary:") and len(classes) != 2:  # noqa: PLR2004 - two classes
        if len(classes) == 1:
            raise UserError(
                f"every row of train has the label {short(classes[0])!r}, and objective={objective} needs "
                "two labels."
            )
        raise UserError(
            f"channel train has {len(classes)} different labels ({_listed(classes)}), and "
            f"objective={objective} needs two: choose multi:softprob for more, or check label_column."
        )
    return classes


AUTO = ("auto",)
"""The setting that takes the labels of train, in their order."""


def _check_column_name(layout: Layout | None, summaries: Mapping[str, Summary]) -> None:
    """Raise UserError if the name of the label's column is a label too: a header stands among the rows."""
    place = dict(layout.roles).get("label") if layout else None
    name = layout.name(place) if layout and place is not None else None
    for channel, summary in summaries.items():
        if name is not None and name in summary.classes:
            raise UserError(
                f"channel {channel} has rows with the label {short(name)!r}, which is the name of the "
                "label's column: a header is repeated, as in files that were joined. Keep the first one only."
            )


def rare_classes(train: Summary) -> Iterator[str]:
    """Yield the notice about classes of one row, which may be a header or the last line of a report."""
    rare = tuple(word for word, rows in train.classes.items() if rows == 1)
    if rare and train.rows >= RARE * len(train.classes):
        yield (
            f"One row of train alone has the label {_listed(rare)}: if it is a header or a sum, take it out."
            if len(rare) == 1
            else f"One row of train alone has each of the labels {_listed(rare)}: take out what is no row."
        )


def check_classes(
    own: Mapping[str, Summary],
    classes: tuple[str, ...],
    wanted: tuple[str, ...],
    find: Callable[[str, str], str],
) -> None:
    """Raise UserError for labels of this worker's rows that are no class.

    `find` returns the place of the first row of a channel with a label, as messages show it.
    """
    coding = Coding(classes)
    mistakes = Mistakes()
    for name, summary in own.items():
        for word in sorted(coding.unseen(summary.classes))[:LISTED]:
            having = "train has" if wanted == AUTO else "class_labels has"
            mistakes.add(
                f"{find(name, word)}: the label {short(word)!r} is none of those that {having} "
                f"({_listed(classes)}): correct the row, or leave it out."
            )
    mistakes.raise_any()


def with_labels(summary: Summary, classes: tuple[str, ...]) -> Summary:
    """Return the summary of rows whose labels have become the codes of the classes."""
    if not summary.classes:
        return summary
    codes = sorted(set(_codes(summary.classes, classes).tolist()))
    different = tuple(codes) if len(codes) <= DISTINCT else None
    return replace(summary, label=Labels(codes[0], codes[-1], whole=True, different=different))


def with_codes(stored: Stored, classes: tuple[str, ...]) -> Stored:
    """Return a channel whose labels are the codes of the classes."""
    table = _codes(stored.summary.classes, classes)

    def batches() -> Iterator[Batch]:
        for batch in stored.batches():
            label = table[batch.roles["label"].astype(np.intp)]
            yield replace(batch, roles={**batch.roles, "label": label})

    return replace(stored, summary=with_labels(stored.summary, classes), batches=batches)


def _codes(words: Iterable[str], classes: tuple[str, ...]) -> npt.NDArray[np.float32]:
    """Return the code of each word."""
    column = pa.chunked_array([pa.array(list(words), pa.string()).dictionary_encode()])
    codes: npt.NDArray[np.float32] = (
        Coding(classes).coded(column).indices.to_numpy(zero_copy_only=False).astype(np.float32)
    )
    return codes


def describe_classes(classes: tuple[str, ...]) -> str:
    """Return the line of the log that says which class has which code."""
    shown = ", ".join(f"{code} = {short(word)!r}" for code, word in enumerate(classes[:LISTED]))
    more = f" and {len(classes) - LISTED} more" if len(classes) > LISTED else ""
    return f"Class labels: {shown}{more}."


def _listed(words: tuple[str, ...]) -> str:
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(repr(short(word)) for word in words[:LISTED]) + more
