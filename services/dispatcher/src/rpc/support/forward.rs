//! One hop: what is asked about a tenant is answered by whoever admits its tasks, whichever instance was asked.

use servo_mesh::{Caller, Error, Peer, PeerIdentity, Reason};
use servo_model::{Service, TenantId};
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use tonic::{Response, Status};

use super::errors::store_error;
use crate::rpc::Dispatcher;
use crate::store;

/// The way to whoever admits the tenant's tasks; `None` when that is this instance. What another instance has passed
/// on goes no further.
pub(in crate::rpc) async fn holder_elsewhere(
    dispatcher: &Dispatcher,
    tenant: &TenantId,
    caller: &Caller,
) -> Result<Option<DispatcherServiceClient<Peer>>, Error> {
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
            Ok(Some(DispatcherServiceClient::new(peer)))
        }
        None => Err(not_holder(dispatcher, tenant).await),
    }
}

/// What the holder answered, or its refusal in its own words.
pub(in crate::rpc) fn unwrap_response<T>(
    response: Result<Response<T>, Status>,
) -> Result<T, Error> {
    let refused = |status: Status| {
        let reason = servo_mesh::error::reason_of(&status).unwrap_or(Reason::DependencyUnavailable);
        Error::new(reason, status.message())
    };
    response.map(Response::into_inner).map_err(refused)
}

/// Whether a tenant's tasks are admitted here.
pub(in crate::rpc) fn holds(dispatcher: &Dispatcher, tenant: &TenantId) -> bool {
    dispatcher
        .engine
        .held()
        .borrow()
        .contains_key(&tenant.admission_shard())
}

/// Where they are admitted, as far as it is known.
pub(in crate::rpc) async fn holder(
    dispatcher: &Dispatcher,
    tenant: &TenantId,
) -> Result<Option<String>, Error> {
    let mut tx = dispatcher
        .store
        .requests()
        .begin(tenant.as_str())
        .await
        .map_err(store_error)?;
    store::holder(&mut tx, tenant.admission_shard())
        .await
        .map_err(store_error)
}

/// The refusal of whoever is not responsible, with the address of who is.
pub(in crate::rpc) async fn not_holder(dispatcher: &Dispatcher, tenant: &TenantId) -> Error {
    let address = holder(dispatcher, tenant)
        .await
        .ok()
        .flatten()
        .unwrap_or_default();
    let message = match address.as_str() {
        "" => format!("nobody admits tasks of `{tenant}` just now; repeat in a moment"),
        address => format!("tasks of `{tenant}` are admitted at {address}; connect there"),
    };
    Error::new(Reason::NotHolder, message).with("address", address)
}
