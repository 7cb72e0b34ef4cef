"""Runs without a server: the planner's choice and the scheduler's fold, in one process, over values in memory."""
