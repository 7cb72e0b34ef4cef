//! Reads the status of a service over mutual TLS.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use servo_mesh::{Mesh, NoSections, Peer, Settings, Shutdown, Sources};
use servo_model::Service;
use servo_proto::v1::mesh_service_client::MeshServiceClient;
use servo_proto::v1::{GetServerInfoRequest, GetServerInfoResponse};

/// The status of a service, or why it could not be read.
#[derive(Debug, Clone)]
pub struct ServiceStatus {
    pub service: Service,
    pub address: String,
    pub healthy: bool,
    /// Why the service is not healthy; empty if it is.
    pub waiting_for: String,
    pub identity: String,
    pub version: String,
    /// RFC 3339, to the second.
    pub start_time: String,
}

/// Calls with the gateway's certificate, which every service accepts.
pub(super) struct Probe {
    mesh: Mesh<NoSections>,
    peers: Mutex<BTreeMap<String, Peer>>,
}

impl Probe {
    pub(super) fn new(certificates: &Path) -> Result<Probe> {
        let file = |name: &str| certificates.join(name).display().to_string();
        let sources = Sources::new()
            .set("tls.certificate", file("gateway.crt"))
            .set("tls.key", file("gateway.key"))
            .set("tls.ca", file("ca.crt"));
        let settings =
            Settings::read(Service::Gateway, &sources).map_err(|fault| anyhow!("{fault}"))?;
        Ok(Probe {
            mesh: Mesh::new(settings, Shutdown::new()),
            peers: Mutex::default(),
        })
    }

    pub(super) async fn status(&self, service: Service, address: String) -> ServiceStatus {
        match self.info(service, &address).await {
            Ok(info) => ServiceStatus::from_info(service, address, info),
            Err(why) => ServiceStatus::unreachable(service, address, why),
        }
    }

    async fn info(&self, service: Service, address: &str) -> Result<GetServerInfoResponse, String> {
        let peer = self.peer(service, address)?;
        let answer = MeshServiceClient::new(peer)
            .get_server_info(GetServerInfoRequest {})
            .await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| status.message().to_owned())
    }

    fn peer(&self, service: Service, address: &str) -> Result<Peer, String> {
        let mut peers = self.peers.lock().map_err(|error| error.to_string())?;
        if let Some(peer) = peers.get(address) {
            return Ok(peer.clone());
        }
        let peer = self
            .mesh
            .peer_at(service, address)
            .map_err(|error| error.to_string())?;
        peers.insert(address.to_owned(), peer.clone());
        Ok(peer)
    }
}

impl ServiceStatus {
    fn from_info(service: Service, address: String, info: GetServerInfoResponse) -> ServiceStatus {
        let started = info
            .start_time
            .and_then(|time| Timestamp::from_second(time.seconds).ok());
        ServiceStatus {
            service,
            address,
            healthy: info.ready,
            waiting_for: info.waiting_for,
            identity: info.identity,
            version: info.version,
            start_time: started.map(|time| time.to_string()).unwrap_or_default(),
        }
    }

    fn unreachable(service: Service, address: String, why: String) -> ServiceStatus {
        ServiceStatus {
            service,
            address,
            healthy: false,
            waiting_for: why,
            identity: String::new(),
            version: String::new(),
            start_time: String::new(),
        }
    }
}
