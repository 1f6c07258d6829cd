"""The protobuf schema of SageMaker's records, `aialgs.data.Record`, as its developer guide has it.

It stands here twice. `Record` is the schema itself. In `Merged` the same bytes are read by other types: a map
is a message that occurs once, so that protobuf merges those of records that stand one behind the other, and
packed numbers are strings of bytes, of which merging makes a list. So one call of the parser takes in any
number of records.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "aialgs.data"
TENSORS = {"float32_tensor": 2, "float64_tensor": 3, "int32_tensor": 7}
"""The kinds of tensors of numbers, and their field numbers in a `Value`."""

_Field = FieldDescriptorProto
_TYPES = {
    "float32_tensor": ("Float32Tensor", _Field.TYPE_FLOAT),
    "float64_tensor": ("Float64Tensor", _Field.TYPE_DOUBLE),
    "int32_tensor": ("Int32Tensor", _Field.TYPE_INT32),
}


def _tensor(message: DescriptorProto, values: int, integers: int) -> None:
    for number, (name, field_type) in enumerate(
        (("values", values), ("keys", integers), ("shape", integers)), 1
    ):
        field = message.field.add(name=name, number=number, type=field_type, label=_Field.LABEL_REPEATED)
        field.options.packed = field_type != _Field.TYPE_BYTES


def _message(message: DescriptorProto, name: str, number: int, of: str, *, repeated: bool = False) -> None:
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    message.field.add(
        name=name, number=number, type=_Field.TYPE_MESSAGE, type_name=f".{PACKAGE}.{of}", label=label
    )


def _exact() -> FileDescriptorProto:
    file = FileDescriptorProto(name="record.proto", package=PACKAGE, syntax="proto2")
    for name, values in _TYPES.values():
        _tensor(file.message_type.add(name=name), values, _Field.TYPE_UINT64)
    content = file.message_type.add(name="Bytes")
    content.field.add(name="value", number=1, type=_Field.TYPE_BYTES, label=_Field.LABEL_REPEATED)
    content.field.add(name="content_type", number=2, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    value = file.message_type.add(name="Value")
    value.oneof_decl.add(name="value")
    for name, number in TENSORS.items():
        _message(value, name, number, _TYPES[name][0])
    _message(value, "bytes", 9, "Bytes")
    for field in value.field:
        field.oneof_index = 0
    record = file.message_type.add(name="Record")
    for number, name in enumerate(("features", "label"), 1):
        entry = record.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
        _message(entry, "value", 2, "Value")
        _message(record, name, number, f"Record.{entry.name}", repeated=True)
    for number, name in enumerate(("uid", "metadata", "configuration"), 3):
        record.field.add(name=name, number=number, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    return file


def _merged() -> FileDescriptorProto:
    file = FileDescriptorProto(name="merged.proto", package=PACKAGE, syntax="proto2")
    _tensor(file.message_type.add(name="Tensor"), _Field.TYPE_BYTES, _Field.TYPE_BYTES)
    value = file.message_type.add(name="Value")
    for name, number in TENSORS.items():
        _message(value, name, number, "Tensor")
    entry = file.message_type.add(name="Entry")
    entry.field.add(name="key", number=1, type=_Field.TYPE_BYTES, label=_Field.LABEL_REPEATED)
    _message(entry, "value", 2, "Value")
    record = file.message_type.add(name="Merged")
    for number, name in enumerate(("features", "label"), 1):
        _message(record, name, number, "Entry")
    return file


def _classes(file: FileDescriptorProto, *names: str) -> list[Any]:
    pool = DescriptorPool()
    pool.Add(file)
    return [GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names]


Record, Float32Tensor, Int32Tensor = _classes(_exact(), "Record", "Float32Tensor", "Int32Tensor")
Merged, Tensor = _classes(_merged(), "Merged", "Tensor")
