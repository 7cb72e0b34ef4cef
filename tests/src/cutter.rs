//! A door that slams: what passes through it is cut off again and again, at any byte.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::Rng;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Passes connections on, each for a random while. Ends when it is dropped.
pub struct Cutter {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Cutter {
    /// In front of `https://host:port`; no connection lives longer than `most`.
    pub async fn before(address: &str, most: Duration) -> Result<Cutter> {
        let target = address
            .strip_prefix("https://")
            .context("it is no https address")?
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let lives = rand::rng().random_range(Duration::from_millis(1)..most);
                tokio::spawn(tokio::time::timeout(lives, pass(client, target.clone())));
            }
        });
        Ok(Cutter { address, accepting })
    }

    pub fn address(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(mut client: TcpStream, target: String) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server)
        .await
        .map(drop)
}
