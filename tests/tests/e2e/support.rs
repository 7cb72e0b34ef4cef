//! Helpers of the end-to-end tests.

use std::path::{Path, PathBuf};

use servo_local::{Instance, MeshInfo};
use servo_mesh::{Mesh, NoSections, Peer, Settings, Shutdown, Sources};
use servo_model::Service;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) use servo_tests::running::{Running, binaries};

/// The ids of all running processes that name `dir` on their command line or in their environment.
pub(crate) fn processes_naming(dir: &Path) -> Vec<u32> {
    let name = dir.to_str().unwrap().as_bytes();
    let names = |file: PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(name.len()).any(|part| part == name)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    ids.filter(|id| {
        *id != own
            && ["cmdline", "environ"]
                .iter()
                .any(|file| names(format!("/proc/{id}/{file}").into()))
    })
    .collect()
}

/// The metrics page of a service.
pub(crate) async fn metrics(mesh: &MeshInfo, service: Service) -> String {
    let address = mesh.metrics_address(service);
    let host = address
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix("/metrics"))
        .unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// Calls the first scheduler as the backfill service.
pub(crate) fn backfill(mesh: &MeshInfo) -> SchedulerMeshServiceClient<Peer> {
    SchedulerMeshServiceClient::new(peer(mesh, Service::Backfill, Service::Scheduler))
}

/// A connection to `instance` with the certificate of the service `caller`.
pub(crate) fn peer(mesh: &MeshInfo, caller: Service, instance: impl Into<Instance>) -> Peer {
    let tls = mesh.ca_path().parent().unwrap().to_path_buf();
    let file = |name: String| tls.join(name).display().to_string();
    let sources = Sources::new()
        .set("tls.certificate", file(format!("{caller}.crt")))
        .set("tls.key", file(format!("{caller}.key")))
        .set("tls.ca", file("ca.crt".to_owned()));
    let settings: Settings<NoSections> =
        Settings::read(caller, &sources).unwrap_or_else(|fault| panic!("{fault}"));
    let instance = instance.into();
    let address = mesh.address(instance);
    Mesh::new(settings, Shutdown::new())
        .peer_at(instance.service, &address)
        .unwrap()
}
