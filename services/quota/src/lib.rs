//! The quota service.
