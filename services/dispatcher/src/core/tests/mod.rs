//! Admission as a whole, driven by a model of schedulers and workers.

mod explain;
mod fairness;
mod limit_counts;
mod limits;
mod push;
mod streams;

mod world;
