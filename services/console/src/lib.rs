//! The console service.
