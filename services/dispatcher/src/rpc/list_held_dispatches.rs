//! ListHeldDispatches: ListDispatches of another instance, for a tenant whose tasks are admitted here.

use servo_mesh::{Caller, Error};
use servo_proto::v1 as pb;

use super::Dispatcher;
use super::list_dispatches::list_dispatches;

pub(super) async fn list_held_dispatches(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::ListHeldDispatchesRequest,
) -> Result<pb::ListHeldDispatchesResponse, Error> {
    let pb::ListHeldDispatchesRequest {
        tenant,
        workspace,
        page_size,
        page_token,
        filter,
    } = request;
    let request = pb::ListDispatchesRequest {
        tenant,
        workspace,
        page_size,
        page_token,
        filter,
    };
    // It has made its hop: if the lease moved meanwhile it is refused here.
    let pb::ListDispatchesResponse {
        dispatches,
        next_page_token,
    } = list_dispatches(dispatcher, caller, request).await?;
    Ok(pb::ListHeldDispatchesResponse {
        dispatches,
        next_page_token,
    })
}
