//! Runs long computations outside of the async threads.

use servo_mesh::{Error, Reason};
use tracing::error;

/// Runs a computation on the blocking pool, so that it does not delay other requests.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|failure| {
        error!(%failure, "a planner computation panicked or was cancelled");
        Error::new(Reason::Internal, "the planner failed internally")
    })
}
