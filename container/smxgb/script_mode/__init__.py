"""Script mode: users' own training programs, run as AWS's XGBoost image runs them.

`script` says what the job brings and is all that the supervisor imports; `work` runs it.
"""
