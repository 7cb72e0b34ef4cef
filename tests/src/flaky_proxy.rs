//! A TCP proxy that cuts each connection after a random time, at any byte.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::Rng;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Stops accepting connections when it is dropped.
pub struct FlakyProxy {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl FlakyProxy {
    /// A proxy for `https://host:port`; no connection lives longer than `lifetime_max`.
    pub async fn start(address: &str, lifetime_max: Duration) -> Result<FlakyProxy> {
        let target = address
            .strip_prefix("https://")
            .context("the address does not begin with https://")?
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let lifetime = rand::rng().random_range(Duration::from_millis(1)..lifetime_max);
                tokio::spawn(tokio::time::timeout(
                    lifetime,
                    forward(client, target.clone()),
                ));
            }
        });
        Ok(FlakyProxy { address, accepting })
    }

    pub fn address(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for FlakyProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(mut client: TcpStream, target: String) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server)
        .await
        .map(drop)
}
