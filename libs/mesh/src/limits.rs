//! Following the limits that the quota service streams, for everybody who enforces some of them.

use std::sync::Arc;

use servo_model::PerTenant;
use servo_proto::v1;
use servo_proto::v1::quota_service_client::QuotaServiceClient;
use tonic::{Code, Status};
use tracing::info;

use crate::peer::Peer;

/// Stands for tenants that are not named.
const OTHERS: &str = "-";

/// Follows the stream until it breaks, and tells the whole picture whenever it changes. `read` takes out of a tenant's
/// limits what the caller enforces. A quota service that does not stream limits has none.
pub async fn follow_limits<T: Default>(
    quota: Peer,
    read: impl Fn(&v1::TenantLimits) -> T,
    tell: impl Fn(PerTenant<T>),
) -> Result<(), Status> {
    let watch = v1::WatchLimitsRequest {
        resume_token: String::new(),
    };
    let mut stream = match QuotaServiceClient::new(quota).watch_limits(watch).await {
        Ok(response) => response.into_inner(),
        Err(status) => return without_limits(status, tell),
    };
    let mut limits = PerTenant::default();
    loop {
        match stream.message().await {
            Ok(Some(told)) if take(&mut limits, &told, &read) => tell(limits.clone()),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(status) => return without_limits(status, tell),
        }
    }
}

fn without_limits<T: Default>(status: Status, tell: impl Fn(PerTenant<T>)) -> Result<(), Status> {
    if status.code() != Code::Unimplemented {
        return Err(status);
    }
    info!("the quota service streams no limits: nobody has a cap");
    tell(PerTenant::none());
    Ok(())
}

/// Answers whether there is something new to tell. What came after the first whole picture counts at once.
fn take<T>(
    limits: &mut PerTenant<T>,
    told: &v1::WatchLimitsResponse,
    read: impl Fn(&v1::TenantLimits) -> T,
) -> bool {
    let changed = !told.tenants.is_empty() || (told.caught_up && !limits.known);
    for tenant in &told.tenants {
        let said = Arc::new(read(tenant));
        match tenant.tenant.parse() {
            Ok(id) => {
                limits.tenants.insert(id, said);
            }
            Err(_) if tenant.tenant == OTHERS => limits.others = said,
            Err(_) => {}
        }
    }
    limits.known |= told.caught_up;
    changed && limits.known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tenants: &[(&str, u32)], caught_up: bool) -> v1::WatchLimitsResponse {
        let tenant = |(tenant, tasks): &(&str, u32)| v1::TenantLimits {
            tenant: (*tenant).to_owned(),
            limits: Some(v1::QuotaLimits {
                max_concurrent_tasks: Some(*tasks),
                ..Default::default()
            }),
            ..Default::default()
        };
        v1::WatchLimitsResponse {
            tenants: tenants.iter().map(tenant).collect(),
            caught_up,
            ..Default::default()
        }
    }

    #[test]
    fn half_a_picture_is_not_told_and_a_reminder_is_nothing_new() {
        let mut limits = PerTenant::default();
        let read =
            |told: &v1::TenantLimits| told.limits.and_then(|limits| limits.max_concurrent_tasks);
        assert!(!take(&mut limits, &said(&[("-", 5)], false), read));
        assert!(take(&mut limits, &said(&[("acme", 7)], true), read));
        assert!(!take(&mut limits, &said(&[], true), read));
        assert!(take(&mut limits, &said(&[("acme", 8)], false), read));
        let of = |tenant: &str| **limits.of(&tenant.parse().unwrap());
        assert_eq!((of("acme"), of("other")), (Some(8), Some(5)));
    }
}
