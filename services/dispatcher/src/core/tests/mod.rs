//! Admission as a whole, driven by a model of what schedulers and workers do.

mod explain;
mod fairness;
mod limit_usage;
mod limits;
mod push;
mod streams;

mod world;
