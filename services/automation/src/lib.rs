//! The automation service.
