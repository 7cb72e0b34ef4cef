//! The backfill service.
