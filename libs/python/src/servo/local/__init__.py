"""Runs without a server: the planner's selection and the scheduler's fold in one process, with values in memory."""
