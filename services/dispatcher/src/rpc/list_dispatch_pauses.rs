//! ListDispatchPauses: what holds a tenant's tasks back on purpose.

use servo_mesh::Error;
use servo_proto::v1 as pb;

use super::page::Pages;
use super::pause_dispatch::pause;
use super::{Dispatcher, EVERYBODY, unavailable};
use crate::store;

impl Dispatcher {
    pub(super) async fn pauses(
        &self,
        request: pb::ListDispatchPausesRequest,
    ) -> Result<pb::ListDispatchPausesResponse, Error> {
        let mut all = Vec::new();
        // Pauses of everybody are no secret of anybody: each is read as the tenant it belongs to.
        for tenant in [EVERYBODY, &request.tenant] {
            let mut tx = self
                .store
                .requests()
                .begin(tenant)
                .await
                .map_err(unavailable)?;
            all.extend(
                store::active_pauses_of(&mut tx, tenant)
                    .await
                    .map_err(unavailable)?,
            );
        }
        let key = |pause: &pb::DispatchPause| {
            let started = pause.start_time.unwrap_or_default();
            format!(
                "{:020}.{:09} {}",
                started.seconds, started.nanos, pause.pause_id
            )
        };
        let mut all: Vec<pb::DispatchPause> = all.iter().map(pause).collect();
        all.sort_by_key(key);
        all.dedup_by(|left, right| left.pause_id == right.pause_id);
        let pages = Pages {
            secret: self.page_secret(),
            list: "pauses",
            tenant: &request.tenant,
            filter: "",
        };
        let (pauses, next_page_token) =
            pages.cut(all, key, request.page_size, &request.page_token)?;
        Ok(pb::ListDispatchPausesResponse {
            pauses,
            next_page_token,
        })
    }
}
