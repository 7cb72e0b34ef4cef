//! Parts that several services share and that need both the mesh and the store.
//!
//! - [`Cache`]: the cache of plans and deployments.
//! - [`errors`]: how failures of the store are answered.
//! - [`request`]: reading the fields that many requests have.
//! - [`ShardHolders`]: which instance holds a shard, and the connection to it.
//! - [`follow_limits`]: the limits that the quota service streams.
//! - [`expire_requests`]: the loop that deletes old answers to mutations.
//! - [`settings`]: sections of the configuration that several services read.
//!
//! **Stays absent:** anything that only one service needs.

mod cache;
pub mod errors;
pub mod expire_requests;
mod holders;
mod limits;
pub mod request;
pub mod settings;

pub use cache::Cache;
pub use holders::ShardHolders;
pub use limits::follow_limits;
