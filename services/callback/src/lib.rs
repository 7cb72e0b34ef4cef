//! The callback service.
