"""Trainers: who starts the workers, one module for each mode of a job."""
