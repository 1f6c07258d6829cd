"""libsvm: lines of a label and index:value pairs."""
