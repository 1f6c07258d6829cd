"""Parquet: tables by column."""
