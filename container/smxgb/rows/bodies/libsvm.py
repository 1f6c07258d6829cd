"""Bodies of libsvm: lines of index:value pairs, with or without a label before them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from smxgb.errors import UserError
from smxgb.job import BOM
from smxgb.rows.bodies.body import SOURCE, as_csr
from smxgb.rows.readers.column_picks import ColumnPicks
from smxgb.rows.readers.libsvm.lines import LineBlock, Lines, line_blocks, roles_of
from smxgb.rows.readers.row_rules import as_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scipy.sparse import csr_matrix

    from smxgb.rows.batch import Sparse
    from smxgb.rows.bodies.body import Body
    from smxgb.rows.signature import Signature

UNLABELLED = re.compile(rb"^[ \t]*(?=\d+:)", re.MULTILINE)
"""Where a line begins that has no label. A request has no weights: a pair at the begin is a feature."""

NO_PICKS = ColumnPicks((), ())


def libsvm_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[csr_matrix]:  # noqa: ARG001 - a label is seen
    """Yield the rows of a body of libsvm; a line with a label alone is a row too.

    The first feature has the index that the model's attribute `libsvm_indexing` says, else 0.

    Raises:
        UserError: If a line is not as it should be, or has an index that is not one of the model's.
    """
    first = signature.schema.first_index or 0
    lines = None
    for block in line_blocks(body.opened()):
        data = UNLABELLED.sub(b"0 ", block.data.removeprefix(BOM))
        if lines is None:
            _check_text(data)
            roles = roles_of(data)
            if roles is None:
                continue
            lines = Lines(roles, signature.settings, NO_PICKS)
        part = lines.part(SOURCE, LineBlock(data, block.line))
        batch = as_batch(pa.Table.from_batches([part.data]), lines.all_roles, None)
        yield as_csr(cast("Sparse", batch), signature, first)


def _check_text(data: bytes) -> None:
    if b"\0" in data[:4096]:
        raise UserError(f"{SOURCE} is not libsvm: it holds bytes that are not text.")
    if b"," in data.split(b"\n", 1)[0].split(b"#")[0]:
        raise UserError(
            f"{SOURCE} is not libsvm: a line is a label and index:value pairs. If it is CSV, give the "
            "content type text/csv."
        )
