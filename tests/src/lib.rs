//! What crosses crates: end-to-end, chaos, security, tidiness and benches.
