//! Runs that keep coming while the mesh is being harmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use servo_client::api;
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::user::User;

const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Whether the call may be repeated: nobody took it, or nobody said so.
pub fn may_repeat(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown
    )
}

/// Asks one door after the other until one acknowledges the run. The same request id makes it one run.
pub async fn acknowledged(doors: &[User], spec: &api::RunSpec, request_id: &str) -> Result<String> {
    for door in doors.iter().cycle() {
        match door.ask_for_run(spec.clone(), request_id).await {
            Ok(answer) => return Ok(answer.run.context("the answer holds no run")?.run_id),
            Err(status) if may_repeat(&status) => tokio::time::sleep(LOOK_AGAIN).await,
            Err(status) => bail!("TriggerRun was refused: {status:?}"),
        }
    }
    bail!("there is no door to knock at")
}

/// Looks through one door after the other until the run has ended.
pub async fn ended(doors: &[User], run_id: &str) -> Result<api::Run> {
    ensure!(!doors.is_empty(), "there is no door to knock at");
    for door in doors.iter().cycle() {
        match door.run(run_id).await {
            Ok(run) if run.end_time.is_some() => return Ok(run),
            Ok(_) => {}
            Err(error) => {
                let status = error.downcast::<Status>().context("read a run")?;
                ensure!(
                    may_repeat(&status),
                    "run {run_id} was acknowledged, now it is: {status:?}"
                );
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    bail!("there is no door to knock at")
}

/// Several callers, each with one run at a time.
pub struct Load {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Result<Vec<String>>>>,
}

impl Load {
    pub fn start(doors: &[User], selection: &str, callers: usize) -> Load {
        let (stop, all_ended) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let spec = api::RunSpec {
            selection: vec![selection.to_owned()],
            ..Default::default()
        };
        let caller = |_| {
            let (doors, spec) = (doors.to_vec(), spec.clone());
            let (stop, all_ended) = (stop.clone(), all_ended.clone());
            tokio::spawn(async move {
                let mut runs = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let request_id = ulid::Ulid::generate().to_string();
                    runs.push(acknowledged(&doors, &spec, &request_id).await?);
                    ended(&doors, &runs[runs.len() - 1]).await?;
                    all_ended.fetch_add(1, Ordering::Relaxed);
                }
                Ok(runs)
            })
        };
        Load {
            callers: (0..callers).map(caller).collect(),
            ended: all_ended.clone(),
            stop,
        }
    }

    /// Waits until so many more runs have ended.
    pub async fn goes_on(&self, more: usize) {
        let enough = self.ended.load(Ordering::Relaxed) + more;
        while self.ended.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Takes no more; answers the ids of all runs that were acknowledged, each of which has ended.
    pub async fn stop(self) -> Result<Vec<String>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut runs = Vec::new();
        for caller in self.callers {
            runs.extend(caller.await??);
        }
        Ok(runs)
    }
}
