//! A user of a running mesh: deploys, triggers, waits.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use servo_client::worker::{PushWorker, Worker, WorkerConfig, WorkerHandle};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::{LocalMesh, TENANT};
use servo_model::Service;

use crate::worker::{Behaving, Journal};

pub const WORKSPACE: &str = "default";
const WORKER_ID: &str = "01JD0000000000000000000000";

/// Connected to a gateway with the API key of a tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct User {
    pub client: Client,
    tenant: String,
}

impl User {
    pub fn of(mesh: &LocalMesh) -> Result<User> {
        User::at(mesh, 0, TENANT)
    }

    /// A user of `tenant` at one of several gateways.
    pub fn at(mesh: &LocalMesh, gateway: usize, tenant: &str) -> Result<User> {
        let address = mesh
            .address((Service::Gateway, gateway))
            .replace("127.0.0.1", "localhost");
        let tls = Tls::new(std::fs::read_to_string(mesh.ca_path())?);
        let key = mesh.api_key_of(tenant).to_owned();
        let client = Client::connect(&address, &tls, Credentials::ApiKey(key))?;
        Ok(User {
            client,
            tenant: tenant.to_owned(),
        })
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub async fn deploy(&self, manifest: api::Manifest) -> Result<api::DeployResponse> {
        let asked = api::DeployRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            source: Some(api::deploy_request::Source::Manifest(manifest)),
            ..Default::default()
        };
        Ok(self
            .client
            .planner()
            .deploy(asked)
            .await
            .context("deploy")?
            .into_inner())
    }

    pub async fn trigger(&self, selection: &[&str]) -> Result<api::Run> {
        let selection = selection.iter().map(|s| (*s).to_owned()).collect();
        self.trigger_spec(api::RunSpec {
            selection,
            ..Default::default()
        })
        .await
    }

    pub async fn trigger_spec(&self, spec: api::RunSpec) -> Result<api::Run> {
        let answer = self.ask_for_run(spec, "").await.context("trigger a run")?;
        answer.run.context("the answer holds no run")
    }

    /// TriggerRun as it is answered; an empty request id lets the client choose one.
    pub async fn ask_for_run(
        &self,
        spec: api::RunSpec,
        request_id: &str,
    ) -> Result<api::TriggerRunResponse, tonic::Status> {
        let asked = api::TriggerRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            spec: Some(spec),
            request_id: request_id.to_owned(),
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .trigger_run(asked)
            .await?
            .into_inner())
    }

    pub async fn run(&self, run_id: &str) -> Result<api::Run> {
        let asked = api::GetRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let answer = self
            .client
            .scheduler()
            .get_run(asked)
            .await
            .context("read a run")?
            .into_inner();
        answer.run.context("the answer holds no run")
    }

    /// Looks until the run has ended: soon for a short one, less often for a long one.
    pub async fn ended(&self, run_id: &str) -> Result<api::Run> {
        let mut pause = Duration::from_millis(4);
        loop {
            let run = self.run(run_id).await?;
            if run.end_time.is_some() {
                return Ok(run);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).min(Duration::from_millis(25));
        }
    }

    /// The newest runs of each shard stand in a projection as the ledger says.
    pub async fn verify(&self, projection: &str, sample_size: u32) -> Result<()> {
        let asked = api::VerifyProjectionRequest {
            projection: projection.to_owned(),
            sample_size,
            ..Default::default()
        };
        let found = self
            .client
            .scheduler()
            .verify_projection(asked)
            .await
            .context("verify")?
            .into_inner();
        ensure!(
            found.equal && found.compared_rows > 0,
            "{projection} is not what the ledger says: {found:?}"
        );
        Ok(())
    }

    /// The run, asked for until somebody answers.
    pub async fn patiently(&self, run_id: &str) -> api::Run {
        loop {
            match self.run(run_id).await {
                Ok(run) => return run,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Looks until the run's tasks stand as wanted.
    pub async fn until(
        &self,
        run_id: &str,
        wanted: impl Fn(api::TaskCounts) -> bool,
    ) -> Result<api::Run> {
        loop {
            let run = self.run(run_id).await?;
            if wanted(run.tasks.unwrap_or_default()) {
                return Ok(run);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn history(&self, run_id: &str) -> Result<Vec<api::RunTransition>> {
        let asked = api::GetRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            include_history: true,
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .get_run(asked)
            .await
            .context("read a run")?
            .into_inner()
            .history)
    }

    pub async fn runs(&self) -> Result<Vec<api::Run>> {
        let asked = api::ListRunsRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .list_runs(asked)
            .await
            .context("list runs")?
            .into_inner()
            .runs)
    }

    pub async fn task(&self, run_id: &str, task_id: &str) -> Result<api::GetTaskResponse> {
        let asked = api::GetTaskRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            task_id: task_id.to_owned(),
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .get_task(asked)
            .await
            .context("read a task")?
            .into_inner())
    }

    pub async fn pause(&self, run_id: &str) -> Result<api::Run> {
        let asked = api::PauseRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let answer = self
            .client
            .scheduler()
            .pause_run(asked)
            .await
            .context("pause a run")?
            .into_inner();
        answer.run.context("the answer holds no run")
    }

    pub async fn resume(&self, run_id: &str) -> Result<api::Run> {
        let asked = api::ResumeRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let answer = self
            .client
            .scheduler()
            .resume_run(asked)
            .await
            .context("resume a run")?
            .into_inner();
        answer.run.context("the answer holds no run")
    }

    pub async fn cancel(&self, run_id: &str) -> Result<api::Run> {
        let asked = api::CancelRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let answer = self
            .client
            .scheduler()
            .cancel_run(asked)
            .await
            .context("cancel a run")?
            .into_inner();
        answer.run.context("the answer holds no run")
    }

    /// Sets what the tenant may use.
    pub async fn limit(&self, limits: api::QuotaLimits) -> Result<()> {
        let (tenant, limits) = (self.tenant.clone(), Some(limits));
        let asked = api::UpdateQuotaRequest {
            tenant,
            limits,
            ..Default::default()
        };
        self.client
            .quota()
            .update_quota(asked)
            .await
            .context("update a quota")
            .map(drop)
    }

    pub async fn create_pool(&self, pool: &str, slots: u32) -> Result<()> {
        let pool = Some(api::Pool {
            pool: pool.to_owned(),
            slots,
            ..Default::default()
        });
        let asked = api::CreatePoolRequest {
            tenant: self.tenant.clone(),
            pool,
            ..Default::default()
        };
        self.client
            .quota()
            .create_pool(asked)
            .await
            .context("create a pool")
            .map(drop)
    }

    /// All tasks of a run, in the plan's order.
    pub async fn tasks(&self, run_id: &str) -> Result<Vec<api::Task>> {
        let mut tasks = Vec::new();
        let mut page_token = String::new();
        loop {
            let asked = api::ListTasksRequest {
                tenant: self.tenant.clone(),
                workspace: WORKSPACE.to_owned(),
                run_id: run_id.to_owned(),
                page_size: 100,
                page_token,
                ..Default::default()
            };
            let page = self
                .client
                .scheduler()
                .list_tasks(asked)
                .await
                .context("list tasks")?
                .into_inner();
            tasks.extend(page.tasks);
            if page.next_page_token.is_empty() {
                return Ok(tasks);
            }
            ensure!(
                !tasks.is_empty(),
                "a page without tasks says that there are more"
            );
            page_token = page.next_page_token;
        }
    }

    /// A worker of this process that listens at `push_url` and does as its tasks say; not started.
    pub fn push_worker(
        &self,
        push_url: &str,
        slots: u32,
    ) -> (api::RegisterWorkerRequest, PushWorker<Behaving>) {
        self.push_worker_noting(push_url, slots, None)
    }

    /// The same, with a journal of what begins.
    pub fn push_worker_noting(
        &self,
        push_url: &str,
        slots: u32,
        journal: Option<Journal>,
    ) -> (api::RegisterWorkerRequest, PushWorker<Behaving>) {
        let info = api::WorkerInfo {
            name: "listening".to_owned(),
            slots,
            handlers: Behaving::handlers(),
            push_url: push_url.to_owned(),
            ..Default::default()
        };
        let worker_id = WORKER_ID.to_owned();
        let config = WorkerConfig::new(TENANT, info.clone()).worker_id(&worker_id);
        let behaving = Behaving::new(self.client.clone(), journal);
        let worker = PushWorker::new(self.client.clone(), self.client.clone(), config, behaving);
        let session = worker.session().to_owned();
        let register = api::RegisterWorkerRequest {
            tenant: TENANT.to_owned(),
            worker_id,
            session,
            info: Some(info),
        };
        (register, worker)
    }

    pub async fn dispatches(&self) -> Result<Vec<api::Dispatch>> {
        let asked = api::ListDispatchesRequest {
            tenant: TENANT.to_owned(),
            workspace: WORKSPACE.to_owned(),
            ..Default::default()
        };
        let answer = self
            .client
            .dispatcher()
            .list_dispatches(asked)
            .await
            .context("list dispatches")?;
        Ok(answer.into_inner().dispatches)
    }

    /// Starts a worker of this process that does as its tasks say.
    pub fn work(&self, slots: u32) -> WorkerHandle {
        let info = api::WorkerInfo {
            name: "in-process".to_owned(),
            slots,
            handlers: Behaving::handlers(),
            ..Default::default()
        };
        let behaving = Behaving::new(self.client.clone(), None);
        let worker = Worker::new(
            self.client.clone(),
            self.client.clone(),
            WorkerConfig::new(&self.tenant, info),
            behaving,
        );
        let handle = worker.handle();
        tokio::spawn(async move {
            if let Err(error) = worker.run().await {
                eprintln!("the worker ended: {error}");
            }
        });
        handle
    }
}
