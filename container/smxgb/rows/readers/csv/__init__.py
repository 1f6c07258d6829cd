"""CSV: files of records with a delimiter."""
