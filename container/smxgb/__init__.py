"""Training container for Amazon SageMaker: XGBoost on every GPU and every host."""

__version__ = "0.1.0"
