//! The parts of a service that its server, its peers and its handle share.

use servo_model::{Service, Timestamp};
use tokio::task::JoinSet;
use tracing::warn;

use crate::config::Common;
use crate::health::Readiness;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::tls::Tls;

pub(crate) struct Runtime {
    pub(crate) service: Service,
    pub(crate) common: Common,
    pub(crate) tls: Tls,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) shutdown: Shutdown,
    pub(crate) started_at: Timestamp,
}

impl Runtime {
    /// Waits for `tasks` to end within the grace period, then aborts the rest and logs `late`.
    pub(crate) async fn drain(&self, mut tasks: JoinSet<()>, late: &str) {
        let done = async { while tasks.join_next().await.is_some() {} };
        let in_time = tokio::select! {
            () = done => true,
            () = tokio::time::sleep(self.common.server.grace) => false,
            () = self.shutdown.ended() => false,
        };
        if !in_time {
            warn!(left = tasks.len(), "{late}");
        }
        tasks.shutdown().await;
    }
}
