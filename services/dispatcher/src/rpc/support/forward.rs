//! Forwarding a call to the instance that admits the tenant's tasks, at most once.

use servo_mesh::{Caller, Error, Peer, PeerIdentity, Reason};
use servo_model::{Service, TenantId};
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use tonic::{Response, Status};

use crate::rpc::Dispatcher;
use crate::store;
use servo_service::errors;

/// Returns the client of the instance that admits the tenant's tasks, or `None` when that is this
/// one. A call that another dispatcher forwarded is not forwarded again.
pub(in crate::rpc) async fn holder_elsewhere(
    dispatcher: &Dispatcher,
    tenant: &TenantId,
    caller: &Caller,
) -> Result<Option<DispatcherMeshServiceClient<Peer>>, Error> {
    if holds(dispatcher, tenant) {
        return Ok(None);
    }
    let already_forwarded = caller.peer == PeerIdentity::Service(Service::Dispatcher);
    match holder(dispatcher, tenant)
        .await?
        .filter(|_| !already_forwarded)
    {
        Some(address) => {
            let peer = dispatcher.mesh.peer_at(Service::Dispatcher, &address)?;
            Ok(Some(DispatcherMeshServiceClient::new(peer)))
        }
        None => Err(not_holder(dispatcher, tenant).await),
    }
}

/// Returns the holder's response, or its error with the same reason and message.
pub(in crate::rpc) fn unwrap_response<T>(
    response: Result<Response<T>, Status>,
) -> Result<T, Error> {
    let refused = |status: Status| {
        let reason = servo_mesh::error::reason_of(&status).unwrap_or(Reason::DependencyUnavailable);
        Error::new(reason, status.message())
    };
    response.map(Response::into_inner).map_err(refused)
}

/// Returns whether the tenant's tasks are admitted here.
pub(in crate::rpc) fn holds(dispatcher: &Dispatcher, tenant: &TenantId) -> bool {
    dispatcher
        .engine
        .held()
        .borrow()
        .contains_key(&tenant.admission_shard())
}

/// Returns the address of the instance that admits the tenant's tasks, if the shard has a holder.
pub(in crate::rpc) async fn holder(
    dispatcher: &Dispatcher,
    tenant: &TenantId,
) -> Result<Option<String>, Error> {
    let mut tx = dispatcher
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(errors::store)?;
    store::holder(&mut tx, tenant.admission_shard())
        .await
        .map_err(errors::store)
}

/// The error of an instance that is not the holder, with the address of the holder.
pub(in crate::rpc) async fn not_holder(dispatcher: &Dispatcher, tenant: &TenantId) -> Error {
    let address = holder(dispatcher, tenant)
        .await
        .ok()
        .flatten()
        .unwrap_or_default();
    let message = match address.as_str() {
        "" => format!("no dispatcher admits tasks of `{tenant}` at the moment; retry"),
        address => format!("tasks of `{tenant}` are admitted at {address}; connect there"),
    };
    Error::new(Reason::NotHolder, message).with("address", address)
}
