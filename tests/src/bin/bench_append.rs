//! Measures how many durable events per second concurrent callers append.
//!
//! 1, 8, 64 and 256 callers in this process, each appending one event of 256 bytes at a time and
//! waiting until it is durable, to all 64 shards and to one shard, on a private Postgres with fsync
//! and synchronous commit. Prints a table to stderr while it runs; the last line of stdout is JSON.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool of the tests, not of the product"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use servo_local::Postgres;
use servo_model::{EventType, Service, ShardId, Stream};
use servo_store::migrate::migrate;
use servo_store::{AppendResult, DatabaseConfig, Ledger, LedgerCounts, NewEvent, Store};
use ulid::Ulid;
use uuid::Uuid;

const CALLERS: [usize; 4] = [1, 8, 64, 256];
const PAYLOAD_BYTES: usize = 256;
const WARM_UP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(5);
const LATENCY_MAX_US: u64 = 60_000_000;

#[tokio::main]
async fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let postgres = Postgres::start(&dir.path().join("cluster"))?;
    migrate(&postgres.admin_url(), postgres.password()).await?;
    let url = format!("postgres://127.0.0.1:{}/postgres", postgres.port());
    let config = DatabaseConfig::new(url, postgres.password().to_owned());
    let store = Store::connect(Service::Scheduler, &config)?;
    store.check().await?;
    eprintln!("shards  callers   events/s  events/commit   p50 ms   p99 ms");
    let mut figures = Map::new();
    let all: Vec<ShardId> = Stream::Execution.shards().collect();
    for (label, shards) in [("append", &all[..]), ("append_one_shard", &all[..1])] {
        for callers in CALLERS {
            let measured = measure(store.ledger(), callers, shards).await?;
            measured.print(shards.len(), callers);
            measured.add_to(&mut figures, label, callers);
        }
    }
    println!("{}", Value::Object(figures));
    Ok(())
}

struct Measured {
    events_per_s: f64,
    events_per_commit: f64,
    latency_us: Histogram<u64>,
}

async fn measure(ledger: &Ledger, callers: usize, shards: &[ShardId]) -> Result<Measured> {
    let (measuring, stop) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let running = (0..callers).map(|caller| {
        let call = call_until(
            ledger.clone(),
            caller,
            shards.to_vec(),
            measuring.clone(),
            stop.clone(),
        );
        async { tokio::spawn(call).await? }
    });
    let watch = async {
        tokio::time::sleep(WARM_UP).await;
        measuring.store(true, Ordering::Relaxed);
        let (before, since) = (ledger.counts(), Instant::now());
        tokio::time::sleep(MEASURED).await;
        let (after, elapsed) = (ledger.counts(), since.elapsed());
        stop.store(true, Ordering::Relaxed);
        Ok::<_, anyhow::Error>((before, after, elapsed))
    };
    let (histograms, (before, after, elapsed)) = tokio::try_join!(try_join_all(running), watch)?;
    let mut latency_us = Histogram::new_with_max(LATENCY_MAX_US, 3)?;
    for histogram in histograms {
        latency_us.add(histogram)?;
    }
    let LedgerCounts { commits, events } = after;
    let (commits, events) = (
        (commits - before.commits) as f64,
        (events - before.events) as f64,
    );
    ensure!(commits > 0.0, "nothing was committed in {MEASURED:?}");
    Ok(Measured {
        events_per_s: events / elapsed.as_secs_f64(),
        events_per_commit: events / commits,
        latency_us,
    })
}

/// One caller, which appends the next event when the last one is durable.
async fn call_until(
    ledger: Ledger,
    caller: usize,
    shards: Vec<ShardId>,
    measuring: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
) -> Result<Histogram<u64>> {
    let mut latency_us = Histogram::new_with_max(LATENCY_MAX_US, 3)?;
    let mut index = caller % shards.len();
    while !stop.load(Ordering::Relaxed) {
        // Visits all shards, in another order than the neighbouring callers.
        index = (index + 7) % shards.len();
        let event = event(shards[index]);
        let begun = Instant::now();
        let appended = ledger.append(vec![event]).await.context("append")?;
        if measuring.load(Ordering::Relaxed) {
            latency_us.saturating_record(begun.elapsed().as_micros().try_into()?);
        }
        ensure!(
            appended[0].result == AppendResult::New,
            "an append returned {:?}",
            appended[0]
        );
    }
    Ok(latency_us)
}

fn event(shard: ShardId) -> NewEvent {
    let id = Ulid::generate();
    NewEvent {
        event_id: Uuid::from_u128(id.into()),
        kind: EventType::TaskFinished,
        version: 1,
        shard,
        tenant: "bench".parse().expect("a tenant name"),
        workspace: "main".to_owned(),
        idempotency_key: format!("finished:{id}"),
        correlation_id: Some(Uuid::from_u128(id.into())),
        causation_id: None,
        payload: vec![b'x'; PAYLOAD_BYTES],
    }
}

impl Measured {
    fn ms_at(&self, quantile: f64) -> f64 {
        self.latency_us.value_at_quantile(quantile) as f64 / 1_000.0
    }

    fn print(&self, shards: usize, callers: usize) {
        let Measured {
            events_per_s,
            events_per_commit,
            ..
        } = self;
        let (p50, p99) = (self.ms_at(0.5), self.ms_at(0.99));
        eprintln!(
            "{shards:>6} {callers:>8} {events_per_s:>10.0} {events_per_commit:>14.1} {p50:>8.2} {p99:>8.2}"
        );
    }

    fn add_to(&self, figures: &mut Map<String, Value>, label: &str, callers: usize) {
        let mut add = |what: &str, figure: f64| {
            figures.insert(
                format!("{label}_{what}_{callers}"),
                json!((figure * 100.0).round() / 100.0),
            );
        };
        add("events_per_s", self.events_per_s);
        add("events_per_commit", self.events_per_commit);
        add("p50_ms", self.ms_at(0.5));
        add("p99_ms", self.ms_at(0.99));
    }
}
