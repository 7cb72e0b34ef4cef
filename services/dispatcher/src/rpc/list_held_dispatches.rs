//! ListHeldDispatches: a ListDispatches call that another instance forwarded to the holder.

use servo_mesh::{Caller, Error};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;

use super::Dispatcher;
use super::list_dispatches::list_dispatches;

pub(super) async fn list_held_dispatches(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: mesh_pb::ListHeldDispatchesRequest,
) -> Result<mesh_pb::ListHeldDispatchesResponse, Error> {
    let mesh_pb::ListHeldDispatchesRequest {
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
    // The call was forwarded once; if the lease has moved again, it is refused here.
    let pb::ListDispatchesResponse {
        dispatches,
        next_page_token,
    } = list_dispatches(dispatcher, caller, request).await?;
    Ok(mesh_pb::ListHeldDispatchesResponse {
        dispatches,
        next_page_token,
    })
}
