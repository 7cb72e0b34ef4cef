//! ListDispatchPauses: the active pauses of a tenant.

use servo_mesh::{Caller, Error};
use servo_model::TenantScope;
use servo_proto::v1 as pb;

use super::Dispatcher;
use super::support::pages::Pages;
use super::support::rows::dispatch_pause;
use super::support::workspaces::sees_pause;
use crate::store;
use servo_service::errors;
use servo_service::request::tenant_scope;

pub(super) async fn list_dispatch_pauses(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::ListDispatchPausesRequest,
) -> Result<pb::ListDispatchPausesResponse, Error> {
    let scope = tenant_scope(&request.tenant)?;
    let mut all = Vec::new();
    // Pauses of all tenants are visible to every tenant. Row-level security requires that each set
    // is read as the tenant it belongs to.
    for tenant in [&TenantScope::All, &scope] {
        let mut tx = dispatcher
            .store
            .requests()
            .begin_in(tenant)
            .await
            .map_err(errors::store)?;
        all.extend(
            store::active_pauses_of(&mut tx, tenant)
                .await
                .map_err(errors::store)?,
        );
    }
    let key = |pause: &pb::DispatchPause| {
        let started = pause.start_time.unwrap_or_default();
        format!(
            "{:020}.{:09} {}",
            started.seconds, started.nanos, pause.pause_id
        )
    };
    let visible = all.iter().filter(|pause| sees_pause(caller, pause));
    let mut all: Vec<pb::DispatchPause> = visible.map(dispatch_pause).collect();
    all.sort_by_key(key);
    all.dedup_by(|left, right| left.pause_id == right.pause_id);
    let pages = Pages {
        tokens: &dispatcher.page_tokens,
        list: "pauses",
        tenant: &request.tenant,
        filter: "",
    };
    let (pauses, next_page_token) =
        pages.select(all, key, request.page_size, &request.page_token)?;
    Ok(pb::ListDispatchPausesResponse {
        pauses,
        next_page_token,
    })
}
