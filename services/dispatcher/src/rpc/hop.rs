//! One hop: what is asked about a tenant is answered by whoever admits its tasks, whichever instance was asked.

use servo_mesh::{Caller, Error, Peer, PeerIdentity, Reason};
use servo_model::{Service, TenantId};
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use tonic::{Response, Status};

use super::Dispatcher;

impl Dispatcher {
    /// The way to whoever admits the tenant's tasks; `None` when that is this instance. What another instance has passed
    /// on goes no further.
    pub(super) async fn holder_elsewhere(
        &self,
        tenant: &TenantId,
        caller: &Caller,
    ) -> Result<Option<DispatcherServiceClient<Peer>>, Error> {
        if self.holds(tenant) {
            return Ok(None);
        }
        let passed_on = caller.peer == PeerIdentity::Service(Service::Dispatcher);
        match self.holder(tenant).await?.filter(|_| !passed_on) {
            Some(address) => {
                let peer = self.mesh.peer_at(Service::Dispatcher, &address)?;
                Ok(Some(DispatcherServiceClient::new(peer)))
            }
            None => Err(self.not_holder(tenant).await),
        }
    }
}

/// What the holder answered, or its refusal in its own words.
pub(super) fn answered<T>(answer: Result<Response<T>, Status>) -> Result<T, Error> {
    let refused = |status: Status| {
        let reason = servo_mesh::error::reason_of(&status).unwrap_or(Reason::DependencyUnavailable);
        Error::new(reason, status.message())
    };
    answer.map(Response::into_inner).map_err(refused)
}
