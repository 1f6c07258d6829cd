"""Rows: from the files of a channel to batches on which all workers agree, ready to be read several times."""

from smxgb.rows.batch import CELL_BYTES, Batch, FloatArray, GroupArray, Sparse, rows_of_batch
from smxgb.rows.bodies import BODY_TYPES, BodyForm, Rows, answer_records, body_form, read_body
from smxgb.rows.classes import check_classes, describe_classes, settle_classes, with_labels, with_words
from smxgb.rows.features import count_features, settle
from smxgb.rows.loading import Loaded, load
from smxgb.rows.query_groups import Runs
from smxgb.rows.readers import Reader, open_reader
from smxgb.rows.reading import ReadingSettings, reading_settings
from smxgb.rows.roles import ROLES
from smxgb.rows.sample import sampled
from smxgb.rows.schema import Declared, Layout, Schema
from smxgb.rows.signature import ATTRIBUTE, Signature, UnfitError
from smxgb.rows.store import Stored, reading_bytes
from smxgb.rows.summary import Shape, Summary, count_bins, no_rows, summarise
from smxgb.rows.worker_group import COUNT, FLAG, FLAGS, Group, Joined, Solo

__all__ = [
    "ATTRIBUTE",
    "BODY_TYPES",
    "CELL_BYTES",
    "COUNT",
    "FLAG",
    "FLAGS",
    "ROLES",
    "Batch",
    "BodyForm",
    "Declared",
    "FloatArray",
    "Group",
    "GroupArray",
    "Joined",
    "Layout",
    "Loaded",
    "Reader",
    "ReadingSettings",
    "Rows",
    "Runs",
    "Schema",
    "Shape",
    "Signature",
    "Solo",
    "Sparse",
    "Stored",
    "Summary",
    "UnfitError",
    "answer_records",
    "body_form",
    "check_classes",
    "count_bins",
    "count_features",
    "describe_classes",
    "load",
    "no_rows",
    "open_reader",
    "read_body",
    "reading_bytes",
    "reading_settings",
    "rows_of_batch",
    "sampled",
    "settle",
    "settle_classes",
    "summarise",
    "with_labels",
    "with_words",
]
