//! The planner service.
