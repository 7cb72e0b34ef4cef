"""Servo: declare data assets as plain functions; Servo plans, runs, retries, schedules and backfills them."""

from __future__ import annotations

__version__ = "0.1.0"
