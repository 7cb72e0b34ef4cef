//! A connection that breaks around the commit leaves its outcome unknown; the ledger retries with
//! the same event ids, and every event is stored exactly once. (F23)

#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use common::{OwnPostgres, connect, count, event, shard, shards};
use servo_local::PostgresOptions;
use servo_model::{EventType, Position, Service, Stream};
use servo_store::{AppendResult, NewEvent, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PASS: u8 = 0;
/// The statement never reaches Postgres.
const CUT_BEFORE: u8 = 1;
/// The statement reaches Postgres, and the connection breaks immediately.
const CUT_AFTER: u8 = 2;
/// Postgres has committed and responded, but the response is lost.
const CUT_BEFORE_ANSWER: u8 = 3;

/// Part of the payload of every event, so that the proxy recognizes the statement that appends.
const MARK: &[u8] = b"cut-here";

#[tokio::test(flavor = "multi_thread")]
async fn f23_a_cut_around_the_commit_appends_exactly_once() {
    let own = OwnPostgres::start(PostgresOptions::without_durability()).await;
    let cut = Arc::new(AtomicU8::new(PASS));
    let port = start_proxy(own.postgres.port(), cut.clone()).await;
    let store = Store::connect(Service::Scheduler, &own.config_at(port)).unwrap();
    let appends = count(10_000, 150);
    for n in 0..appends {
        cut.store(
            [PASS, CUT_BEFORE, CUT_AFTER, CUT_BEFORE_ANSWER][n % 4],
            Ordering::SeqCst,
        );
        let marked = NewEvent {
            payload: [MARK, n.to_string().as_bytes()].concat(),
            ..event(
                EventType::TaskFinished,
                shard(n as u32 % 3),
                "acme",
                &format!("k{n}"),
            )
        };
        let answers = store.ledger().append(vec![marked]).await.unwrap();
        assert_eq!(answers[0].result, AppendResult::New, "append {n}");
        assert_eq!(
            cut.load(Ordering::SeqCst),
            PASS,
            "append {n} was not interrupted"
        );
    }
    let direct = Store::connect(Service::Scheduler, &own.config()).unwrap();
    let mut keys = Vec::new();
    for shard in shards([0, 1, 2]) {
        let mut after = Position::START;
        loop {
            let events = direct
                .reader()
                .read(Stream::Execution, shard, after, 1_000)
                .await
                .unwrap();
            let Some(last) = events.last() else { break };
            after = last.position;
            keys.extend(events.into_iter().map(|event| event.idempotency_key));
        }
    }
    keys.sort();
    let mut expected: Vec<String> = (0..appends).map(|n| format!("k{n}")).collect();
    expected.sort();
    assert_eq!(keys, expected);
    connect(&own.postgres.admin_url()).await;
}

/// Forwards bytes, and breaks one connection when `cut` is set.
async fn start_proxy(server_port: u16, cut: Arc<AtomicU8>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", server_port))
                .await
                .unwrap();
            tokio::spawn(forward(client, server, cut.clone()));
        }
    });
    port
}

/// Returning drops both sockets, which breaks the connection.
async fn forward(mut client: TcpStream, mut server: TcpStream, cut: Arc<AtomicU8>) {
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(n @ 1..) = read else { return };
                let is_append = up[..n].windows(MARK.len()).any(|window| window == MARK);
                let cut_mode = if is_append { cut.swap(PASS, Ordering::SeqCst) } else { PASS };
                if cut_mode == CUT_BEFORE || server.write_all(&up[..n]).await.is_err() || cut_mode == CUT_AFTER {
                    return;
                }
                if cut_mode == CUT_BEFORE_ANSWER {
                    wait_until_committed(&mut server).await;
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(n @ 1..) = read else { return };
                if client.write_all(&down[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// ReadyForQuery, the last message of a response, marks the end of the transaction: `Z`, length 5,
/// `I` for idle.
async fn wait_until_committed(server: &mut TcpStream) {
    let mut answer = Vec::new();
    while !answer.ends_with(b"Z\0\0\0\x05I") {
        if !matches!(server.read_buf(&mut answer).await, Ok(1..)) {
            return;
        }
    }
}
