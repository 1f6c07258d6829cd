"""Bodies of Parquet: a table whose columns are matched to the model's features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from smxgb.errors import UserError
from smxgb.rows.batch import rows_of_batch
from smxgb.rows.bodies.body import SOURCE, as_matrix
from smxgb.rows.categories import CATEGORY
from smxgb.rows.readers.parquet.types import check_types, converted, saved_index
from smxgb.rows.readers.row_rules import clean
from smxgb.wording import shown_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.rows.batch import FloatArray
    from smxgb.rows.bodies.body import Body
    from smxgb.rows.schema import Layout
    from smxgb.rows.signature import Signature


def parquet_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[FloatArray]:
    """Yield the rows of a body of Parquet.

    Raises:
        UserError: If it is damaged, lacks a feature, or has text where the model has numbers.
    """
    try:
        with pq.ParquetFile(body.stream) as parquet:
            index = saved_index(parquet.schema_arrow)
            fields = [field for field in parquet.schema_arrow if field.name not in index]
            names = tuple(field.name for field in fields)
            layout = signature.layout(names, len(names), SOURCE, label_first=label_first)
            check_types(
                [(SOURCE, names, tuple(field.type for field in fields), layout)],
                dictionaries=False,
                codes_labels=False,
            )
            yield from _rows(parquet, names, layout, signature)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(
            f"{SOURCE} can't be read as Parquet: it is damaged, cut off, or of another type."
        ) from error


def _rows(
    parquet: pq.ParquetFile, names: tuple[str, ...], layout: Layout, signature: Signature
) -> Iterator[FloatArray]:
    wanted = [names[position] for position in layout.features]
    before = 0
    size = rows_of_batch(len(wanted))
    for raw in parquet.iter_batches(size, columns=sorted(set(wanted)), use_threads=False):
        columns = [
            converted(
                raw.column(names[position]),
                CATEGORY if position in layout.categorical else pa.float32(),
                SOURCE,
                shown_column(position, names),
            )
            for position in layout.features
        ]
        data = pa.RecordBatch.from_arrays(columns, [str(index) for index in range(len(columns))])
        part, faults = clean(data, (), signature.settings)
        for fault in faults:
            position = layout.features[fault.column]
            values = raw.column(names[position])
            place = ("row", lambda row, before=before: before + row + 1)
            raise UserError(
                fault.text(
                    SOURCE,
                    shown_column(position, names),
                    place,
                    lambda row, values=values: str(values[row].as_py()),  # type: ignore[misc]
                )
            )
        yield as_matrix(part.data, signature)
        before += raw.num_rows
