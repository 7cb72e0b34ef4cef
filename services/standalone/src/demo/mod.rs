//! The demo's job: an example project, deployed, run and shown while it runs.

mod project;
mod screen;
mod worker;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::{LocalMesh, TENANT};
use servo_model::Service;

use screen::Screen;

const WORKSPACE: &str = "default";
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the example came to.
pub(crate) struct Outcome {
    pub(crate) run: api::Run,
    pub(crate) tasks: Vec<api::Task>,
}

/// Deploys the example project, runs it with a worker of this process, and shows it on the way unless `quiet`.
pub(crate) async fn run(mesh: &LocalMesh, quiet: bool) -> Result<Outcome> {
    let client = connect(mesh)?;
    let worker = worker::start(&client);
    let deployed = deploy(&client).await?;
    let run = trigger(&client).await?;
    let mut screen = Screen::open(quiet, &deployed, &run);
    let outcome = loop {
        let outcome = look(&client, &run.run_id).await?;
        screen.show(&outcome);
        if outcome.run.end_time.is_some() {
            break outcome;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    screen.close(&outcome);
    worker.leave();
    expect(&outcome)?;
    Ok(outcome)
}

/// One task of the example fails on purpose: its branch is skipped, everything else succeeds.
fn expect(outcome: &Outcome) -> Result<()> {
    let wrong = outcome.tasks.iter().find(|task| {
        let expected = match task.asset_key.as_str() {
            project::FAILS => api::TaskState::Failed,
            project::SKIPPED => api::TaskState::Skipped,
            _ => api::TaskState::Succeeded,
        };
        task.state() != expected
    });
    match wrong {
        Some(task) => bail!("{} ended {}", task.task_key, screen::name(task.state())),
        None if outcome.run.state() != api::RunState::Failed => {
            bail!("the run ended {:?}", outcome.run.state())
        }
        None => Ok(()),
    }
}

fn connect(mesh: &LocalMesh) -> Result<Client> {
    let address = mesh
        .address(Service::Gateway)
        .replace("127.0.0.1", "localhost");
    let tls =
        Tls::new(std::fs::read_to_string(mesh.ca_path()).context("read the CA's certificate")?);
    Ok(Client::connect(
        &address,
        &tls,
        Credentials::ApiKey(mesh.api_key().to_owned()),
    )?)
}

async fn deploy(client: &Client) -> Result<api::DeployResponse> {
    let asked = api::DeployRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        source: Some(api::deploy_request::Source::Manifest(project::manifest())),
        comment: "the example project".to_owned(),
        ..Default::default()
    };
    Ok(client
        .planner()
        .deploy(asked)
        .await
        .context("deploy the example project")?
        .into_inner())
}

async fn trigger(client: &Client) -> Result<api::Run> {
    let asked = api::TriggerRunRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(project::everything()),
        comment: "make demo".to_owned(),
        ..Default::default()
    };
    let answer = client
        .scheduler()
        .trigger_run(asked)
        .await
        .context("trigger a run")?
        .into_inner();
    answer.run.context("the answer to TriggerRun holds no run")
}

async fn look(client: &Client, run_id: &str) -> Result<Outcome> {
    let (tenant, workspace, run_id) = (TENANT.to_owned(), WORKSPACE.to_owned(), run_id.to_owned());
    let asked = api::GetRunRequest {
        tenant: tenant.clone(),
        workspace: workspace.clone(),
        run_id: run_id.clone(),
        ..Default::default()
    };
    let run = client
        .scheduler()
        .get_run(asked)
        .await
        .context("read the run")?
        .into_inner()
        .run;
    let asked = api::ListTasksRequest {
        tenant,
        workspace,
        run_id,
        page_size: 100,
        ..Default::default()
    };
    let tasks = client
        .scheduler()
        .list_tasks(asked)
        .await
        .context("read its tasks")?
        .into_inner()
        .tasks;
    Ok(Outcome {
        run: run.context("the answer to GetRun holds no run")?,
        tasks,
    })
}
