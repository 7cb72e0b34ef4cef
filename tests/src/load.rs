//! Runs that are triggered continuously while a test disturbs the mesh.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use servo_client::api;
use servo_local::wait::{Wait, until_within};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::run_limit;
use crate::user::User;

/// Whether the call may be repeated, because it was not executed or its response was lost.
pub fn is_retryable(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
    )
}

/// Calls TriggerRun at one gateway after the other until one acknowledges the run. The request id
/// makes all calls one run.
pub async fn trigger(users: &[User], spec: &api::RunSpec, request_id: &str) -> Result<String> {
    let mut wait = Wait::within(run_limit(), "a gateway to acknowledge a run");
    for user in users.iter().cycle() {
        match user.try_trigger(spec.clone(), request_id).await {
            Ok(response) => return Ok(response.run.context("the response has no run")?.run_id),
            Err(status) if is_retryable(&status) => wait.pause().await,
            Err(status) => bail!("TriggerRun was refused: {status:?}"),
        }
    }
    bail!("there is no gateway to call")
}

/// Reads the run at one gateway after the other until it has ended.
pub async fn wait_for_end(users: &[User], run_id: &str) -> Result<api::Run> {
    let what = format!("run {run_id} to end");
    let mut wait = Wait::within(run_limit(), &what);
    for user in users.iter().cycle() {
        match user.run(run_id).await {
            Ok(run) if run.end_time.is_some() => return Ok(run),
            Ok(_) => {}
            Err(error) => {
                let status = error.downcast::<Status>().context("read a run")?;
                ensure!(
                    is_retryable(&status),
                    "run {run_id} was acknowledged, but reading it fails: {status:?}"
                );
            }
        }
        wait.pause().await;
    }
    bail!("there is no gateway to call")
}

/// Several callers, each with one run at a time.
pub struct Load {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Result<Vec<String>>>>,
}

impl Load {
    pub fn start(users: &[User], selection: &str, callers: usize) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(AtomicUsize::new(0));
        let spec = api::RunSpec {
            selection: vec![selection.to_owned()],
            ..Default::default()
        };
        let caller = |_| {
            let (users, spec) = (users.to_vec(), spec.clone());
            let (stop, ended) = (stop.clone(), ended.clone());
            tokio::spawn(async move {
                let mut runs = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let request_id = ulid::Ulid::generate().to_string();
                    runs.push(trigger(&users, &spec, &request_id).await?);
                    wait_for_end(&users, &runs[runs.len() - 1]).await?;
                    ended.fetch_add(1, Ordering::Relaxed);
                }
                Ok(runs)
            })
        };
        Load {
            callers: (0..callers).map(caller).collect(),
            ended,
            stop,
        }
    }

    /// Waits until this many more runs have ended.
    pub async fn wait_for_runs(&self, count: usize) {
        let target = self.ended.load(Ordering::Relaxed) + count;
        until_within(run_limit(), "more runs to end under load", async || {
            (self.ended.load(Ordering::Relaxed) >= target).then_some(())
        })
        .await;
    }

    /// Triggers no more runs; returns the ids of all acknowledged runs, each of which has ended.
    pub async fn stop(self) -> Result<Vec<String>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut runs = Vec::new();
        for caller in self.callers {
            runs.extend(caller.await??);
        }
        Ok(runs)
    }
}
