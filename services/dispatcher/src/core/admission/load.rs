//! The load of each tenant, for metrics.

use servo_model::TenantId;

use super::Admission;

#[derive(Debug, Clone, PartialEq)]
pub struct TenantLoad {
    pub tenant: TenantId,
    /// Tasks that wait to be admitted.
    pub ready: u32,
    /// Attempts that hold a slot.
    pub live: u32,
    /// For each limit, the part of it that is used.
    pub used: Vec<(String, f64)>,
}

impl Admission {
    /// Returns the load of every known tenant.
    pub fn loads(&self) -> Vec<TenantLoad> {
        let load = |(id, tenant): (&TenantId, &crate::core::tenant::Tenant)| {
            let limits = self.limits.of(id);
            let tasks = limits
                .max_concurrent_tasks
                .map(|max| ("max_concurrent_tasks".to_owned(), tenant.live, max));
            let pools = limits
                .pools
                .iter()
                .map(|(pool, slots)| (format!("pool:{pool}"), tenant.pool_used(pool), *slots));
            let used = tasks
                .into_iter()
                .chain(pools)
                .map(|(name, used, max)| (name, used_part(used, max)));
            let ready = u32::try_from(tenant.ready_queues.len()).unwrap_or(u32::MAX);
            TenantLoad {
                tenant: id.clone(),
                ready,
                live: tenant.live,
                used: used.collect(),
            }
        };
        self.tenants.iter().map(load).collect()
    }
}

/// Returns the used part of a limit. A limit of 0 is always fully used.
fn used_part(used: u32, max: u32) -> f64 {
    match max {
        0 => 1.0,
        max => f64::from(used) / f64::from(max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_zero_is_fully_used() {
        assert_eq!(
            (used_part(0, 0), used_part(1, 4), used_part(6, 4)),
            (1.0, 0.25, 1.5)
        );
    }
}
