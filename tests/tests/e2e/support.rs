//! What the end-to-end tests share.

use std::path::{Path, PathBuf};

use servo_model::Service;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) use servo_tests::running::{Running, binaries};

/// The ids of all living processes that name `dir` on their command line or in their environment.
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
        *id != own && ["cmdline", "environ"].iter().any(|file| names(format!("/proc/{id}/{file}").into()))
    })
    .collect()
}

/// What a service tells Prometheus.
pub(crate) async fn metrics(running: &Running, service: Service) -> String {
    let address = running.mesh.metrics_address(service);
    let host = address.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let asked = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(asked.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
