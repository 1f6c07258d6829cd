"""The job: hosts, settings and channels as one frozen value, and who trains."""

from smxgb.job.base_model import BaseModel, read_model
from smxgb.job.channels import Channel, Channels, Name
from smxgb.job.compression import (
    SUFFIXES,
    Readable,
    Rejoined,
    decompressed,
    foreign,
    is_compressed,
    read_fully,
)
from smxgb.job.content_types import (
    BOM,
    CONTENT_TYPES,
    EXTENSIONS,
    FORMATS,
    PARQUET_MAGIC,
    RECORDIO_MAGIC,
    ContentType,
    Format,
    extension,
)
from smxgb.job.data_files import DataFile, ListedFile, blaming_changes, is_data
from smxgb.job.job import Job, load_job
from smxgb.job.mode import Device, Mode, Team, choose_team
from smxgb.job.overlap import overlaps
from smxgb.job.sources import Sources, read_hyperparameters, read_settings

__all__ = [
    "BOM",
    "CONTENT_TYPES",
    "EXTENSIONS",
    "FORMATS",
    "PARQUET_MAGIC",
    "RECORDIO_MAGIC",
    "SUFFIXES",
    "BaseModel",
    "Channel",
    "Channels",
    "ContentType",
    "DataFile",
    "Device",
    "Format",
    "Job",
    "ListedFile",
    "Mode",
    "Name",
    "Readable",
    "Rejoined",
    "Sources",
    "Team",
    "blaming_changes",
    "choose_team",
    "decompressed",
    "extension",
    "foreign",
    "is_compressed",
    "is_data",
    "load_job",
    "overlaps",
    "read_fully",
    "read_hyperparameters",
    "read_model",
    "read_settings",
]
