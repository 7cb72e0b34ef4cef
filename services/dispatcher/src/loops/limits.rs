//! Following the limits that the quota service streams.

use std::sync::Arc;

use servo_mesh::Peer;
use servo_proto::v1 as pb;
use servo_proto::v1::quota_service_client::QuotaServiceClient;
use tonic::{Code, Status};
use tracing::info;

use super::engine::{Engine, Message};
use crate::core::Limits;
use crate::wire;

/// Stands for tenants that are not named.
const OTHERS: &str = "-";

/// Follows the stream until it breaks. A quota service that does not stream limits has none.
pub(crate) async fn follow(mut quota: QuotaServiceClient<Peer>, engine: Engine) -> Result<(), Status> {
    let watch = pb::WatchLimitsRequest { resume_token: String::new() };
    let mut stream = match quota.watch_limits(watch).await {
        Ok(response) => response.into_inner(),
        Err(status) if status.code() == Code::Unimplemented => return without_limits(&engine),
        Err(status) => return Err(status),
    };
    let mut limits = Limits::default();
    loop {
        match stream.message().await {
            Ok(Some(told)) => take(&mut limits, told, &engine),
            Ok(None) => return Ok(()),
            Err(status) if status.code() == Code::Unimplemented => return without_limits(&engine),
            Err(status) => return Err(status),
        }
    }
}

fn without_limits(engine: &Engine) -> Result<(), Status> {
    info!("the quota service streams no limits: nobody has a cap");
    engine.tell(Message::Limits(Limits::none()));
    Ok(())
}

/// What came after the first whole picture counts at once.
fn take(limits: &mut Limits, told: pb::WatchLimitsResponse, engine: &Engine) {
    let changed = !told.tenants.is_empty() || (told.caught_up && !limits.known);
    for tenant in &told.tenants {
        let said = Arc::new(wire::limits(tenant));
        match tenant.tenant.parse() {
            Ok(id) => {
                limits.tenants.insert(id, said);
            }
            Err(_) if tenant.tenant == OTHERS => limits.others = said,
            Err(_) => {}
        }
    }
    limits.known |= told.caught_up;
    if changed && limits.known {
        engine.tell(Message::Limits(limits.clone()));
    }
}
