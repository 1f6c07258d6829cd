"""RecordIO-protobuf: SageMaker's records."""
