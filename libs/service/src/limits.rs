//! The limits that the quota service streams, for the services that enforce them.

use std::sync::Arc;

use servo_model::PerTenant;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::quota_mesh_service_client::QuotaMeshServiceClient;
use tonic::{Code, Status};
use tracing::info;

use servo_mesh::Peer;

/// The entry that holds for tenants without one of their own.
const OTHERS: &str = "-";

/// Follows the stream until it breaks and calls `publish` with all limits whenever one changes.
/// `read` extracts the part of a tenant's limits that the caller enforces. A quota service that
/// does not stream limits has none.
pub async fn follow_limits<T: Default, F: Future<Output = ()>>(
    quota: Peer,
    read: impl Fn(&mesh_pb::TenantLimits) -> T,
    publish: impl Fn(PerTenant<T>) -> F,
) -> Result<(), Status> {
    let watch = mesh_pb::WatchLimitsRequest {
        resume_token: String::new(),
    };
    let mut stream = match QuotaMeshServiceClient::new(quota).watch_limits(watch).await {
        Ok(response) => response.into_inner(),
        Err(status) => return without_limits(status, publish).await,
    };
    let mut limits = PerTenant::default();
    loop {
        match stream.message().await {
            Ok(Some(update)) if apply(&mut limits, &update, &read) => publish(limits.clone()).await,
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(status) => return without_limits(status, publish).await,
        }
    }
}

async fn without_limits<T: Default, F: Future<Output = ()>>(
    status: Status,
    publish: impl Fn(PerTenant<T>) -> F,
) -> Result<(), Status> {
    if status.code() != Code::Unimplemented {
        return Err(status);
    }
    info!("the quota service streams no limits: no tenant has a limit");
    publish(PerTenant::none()).await;
    Ok(())
}

/// Applies one message and returns whether to publish. Nothing is published before the first whole
/// set has arrived; after that every change counts at once.
fn apply<T>(
    limits: &mut PerTenant<T>,
    update: &mesh_pb::WatchLimitsResponse,
    read: impl Fn(&mesh_pb::TenantLimits) -> T,
) -> bool {
    let changed = !update.tenants.is_empty() || (update.caught_up && !limits.known);
    for tenant in &update.tenants {
        let limit = Arc::new(read(tenant));
        match tenant.tenant.parse() {
            Ok(id) => {
                limits.tenants.insert(id, limit);
            }
            Err(_) if tenant.tenant == OTHERS => limits.others = limit,
            Err(_) => {}
        }
    }
    limits.known |= update.caught_up;
    changed && limits.known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(tenants: &[(&str, u32)], caught_up: bool) -> mesh_pb::WatchLimitsResponse {
        let tenant = |(tenant, tasks): &(&str, u32)| mesh_pb::TenantLimits {
            tenant: (*tenant).to_owned(),
            limits: Some(servo_proto::v1::QuotaLimits {
                max_concurrent_tasks: Some(*tasks),
                ..Default::default()
            }),
            ..Default::default()
        };
        mesh_pb::WatchLimitsResponse {
            tenants: tenants.iter().map(tenant).collect(),
            caught_up,
            ..Default::default()
        }
    }

    #[test]
    fn nothing_is_published_before_the_first_whole_set_or_without_a_change() {
        let mut limits = PerTenant::default();
        let read = |tenant: &mesh_pb::TenantLimits| {
            tenant.limits.and_then(|limits| limits.max_concurrent_tasks)
        };
        assert!(!apply(&mut limits, &update(&[("-", 5)], false), read));
        assert!(apply(&mut limits, &update(&[("acme", 7)], true), read));
        assert!(!apply(&mut limits, &update(&[], true), read));
        assert!(apply(&mut limits, &update(&[("acme", 8)], false), read));
        let of = |tenant: &str| **limits.of(&tenant.parse().unwrap());
        assert_eq!((of("acme"), of("other")), (Some(8), Some(5)));
    }
}
