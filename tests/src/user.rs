//! A user of a running mesh, who deploys, triggers runs and waits for them.

use anyhow::{Context, Result, ensure};
use servo_client::worker::{PushWorker, Worker, WorkerConfig, WorkerHandle};
use servo_client::{Client, Credentials, Tls, api};
use servo_local::wait::{until, until_within};
use servo_local::{MeshInfo, TENANT};
use servo_model::Service;

use crate::run_limit;
use crate::worker::{Journal, TestHandler};

pub const WORKSPACE: &str = "default";

/// A client of a gateway with the administrator's API key of a tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct User {
    pub client: Client,
    /// The platform operator, for limits and for the state of the platform.
    pub platform: Client,
    tenant: String,
}

impl User {
    /// A user of the default tenant.
    pub fn of(mesh: &MeshInfo) -> Result<User> {
        User::at(mesh, 0, TENANT)
    }

    /// A user of `tenant` at one of several gateways.
    pub fn at(mesh: &MeshInfo, gateway: usize, tenant: &str) -> Result<User> {
        let address = mesh
            .address((Service::Gateway, gateway))
            .replace("127.0.0.1", "localhost");
        let tls = Tls::new(std::fs::read_to_string(mesh.ca_path())?);
        let client =
            |key: &str| Client::connect(&address, &tls, Credentials::ApiKey(key.to_owned()));
        Ok(User {
            client: client(mesh.api_key_of(tenant))?,
            platform: client(mesh.platform_key())?,
            tenant: tenant.to_owned(),
        })
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub async fn deploy(&self, manifest: api::Manifest) -> Result<api::DeployResponse> {
        let request = api::DeployRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            source: Some(api::deploy_request::Source::Manifest(manifest)),
            ..Default::default()
        };
        Ok(self
            .client
            .planner()
            .deploy(request)
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
        let response = self.try_trigger(spec, "").await.context("trigger a run")?;
        response.run.context("the response has no run")
    }

    /// TriggerRun with its error as it is; an empty request id lets the client choose one.
    pub async fn try_trigger(
        &self,
        spec: api::RunSpec,
        request_id: &str,
    ) -> Result<api::TriggerRunResponse, tonic::Status> {
        let request = api::TriggerRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            spec: Some(spec),
            request_id: request_id.to_owned(),
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .trigger_run(request)
            .await?
            .into_inner())
    }

    pub async fn run(&self, run_id: &str) -> Result<api::Run> {
        let request = api::GetRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let response = self
            .client
            .scheduler()
            .get_run(request)
            .await
            .context("read a run")?
            .into_inner();
        response.run.context("the response has no run")
    }

    /// Waits until the run has ended.
    pub async fn wait_for_end(&self, run_id: &str) -> Result<api::Run> {
        until_within(
            run_limit(),
            &format!("run {run_id} to end"),
            async || match self.run(run_id).await {
                Ok(run) if run.end_time.is_none() => None,
                read => Some(read),
            },
        )
        .await
    }

    /// Waits until the numbers of the run's tasks satisfy `condition`, which `what` describes.
    pub async fn wait_for_tasks(
        &self,
        run_id: &str,
        what: &str,
        condition: impl Fn(api::TaskCounts) -> bool,
    ) -> Result<api::Run> {
        until(what, async || match self.run(run_id).await {
            Ok(run) if !condition(run.tasks.unwrap_or_default()) => None,
            read => Some(read),
        })
        .await
    }

    /// Reads the run as soon as the mesh responds, while services of it restart.
    pub async fn run_when_reachable(&self, run_id: &str) -> api::Run {
        until("the mesh to respond to GetRun", async || {
            self.run(run_id).await.ok()
        })
        .await
    }

    /// Checks that the newest runs of each shard are in a projection as in the ledger.
    pub async fn verify(&self, projection: &str, sample_size: u32) -> Result<()> {
        let request = api::VerifyProjectionRequest {
            projection: projection.to_owned(),
            sample_size,
            ..Default::default()
        };
        let found = self
            .platform
            .system()
            .verify_projection(request)
            .await
            .context("verify")?
            .into_inner();
        ensure!(
            found.equal && found.compared_rows > 0,
            "{projection} differs from the ledger: {found:?}"
        );
        Ok(())
    }

    pub async fn history(&self, run_id: &str) -> Result<Vec<api::RunTransition>> {
        let request = api::GetRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            include_history: true,
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .get_run(request)
            .await
            .context("read a run")?
            .into_inner()
            .history)
    }

    pub async fn runs(&self) -> Result<Vec<api::Run>> {
        let request = api::ListRunsRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .list_runs(request)
            .await
            .context("list runs")?
            .into_inner()
            .runs)
    }

    pub async fn task(&self, run_id: &str, task_id: &str) -> Result<api::GetTaskResponse> {
        let request = api::GetTaskRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            task_id: task_id.to_owned(),
            ..Default::default()
        };
        Ok(self
            .client
            .scheduler()
            .get_task(request)
            .await
            .context("read a task")?
            .into_inner())
    }

    pub async fn pause(&self, run_id: &str) -> Result<api::Run> {
        let request = api::PauseRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let response = self
            .client
            .scheduler()
            .pause_run(request)
            .await
            .context("pause a run")?
            .into_inner();
        response.run.context("the response has no run")
    }

    pub async fn resume(&self, run_id: &str) -> Result<api::Run> {
        let request = api::ResumeRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let response = self
            .client
            .scheduler()
            .resume_run(request)
            .await
            .context("resume a run")?
            .into_inner();
        response.run.context("the response has no run")
    }

    pub async fn cancel(&self, run_id: &str) -> Result<api::Run> {
        let request = api::CancelRunRequest {
            tenant: self.tenant.clone(),
            workspace: WORKSPACE.to_owned(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        let response = self
            .client
            .scheduler()
            .cancel_run(request)
            .await
            .context("cancel a run")?
            .into_inner();
        response.run.context("the response has no run")
    }

    pub async fn set_limits(&self, limits: api::QuotaLimits) -> Result<()> {
        let (tenant, limits) = (self.tenant.clone(), Some(limits));
        let request = api::UpdateQuotaRequest {
            tenant,
            limits,
            ..Default::default()
        };
        self.platform
            .quota()
            .update_quota(request)
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
        let request = api::CreatePoolRequest {
            tenant: self.tenant.clone(),
            pool,
            ..Default::default()
        };
        self.client
            .quota()
            .create_pool(request)
            .await
            .context("create a pool")
            .map(drop)
    }

    /// All tasks of a run, in the order of the plan.
    pub async fn tasks(&self, run_id: &str) -> Result<Vec<api::Task>> {
        let mut tasks = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = api::ListTasksRequest {
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
                .list_tasks(request)
                .await
                .context("list tasks")?
                .into_inner();
            tasks.extend(page.tasks);
            if page.next_page_token.is_empty() {
                return Ok(tasks);
            }
            ensure!(!tasks.is_empty(), "an empty page is not the last one");
            page_token = page.next_page_token;
        }
    }

    /// A push worker in this process that listens at `push_url`, and its registration. Neither is
    /// started.
    pub fn push_worker(
        &self,
        push_url: &str,
        slots: u32,
    ) -> (api::RegisterWorkerRequest, PushWorker<TestHandler>) {
        self.push_worker_with_journal(push_url, slots, None)
    }

    /// A push worker that writes a line for every attempt that begins.
    pub fn push_worker_with_journal(
        &self,
        push_url: &str,
        slots: u32,
        journal: Option<Journal>,
    ) -> (api::RegisterWorkerRequest, PushWorker<TestHandler>) {
        let info = api::WorkerInfo {
            name: "listening".to_owned(),
            slots,
            handlers: TestHandler::names(),
            push_url: push_url.to_owned(),
            ..Default::default()
        };
        let worker_id = ulid::Ulid::generate().to_string();
        let config = WorkerConfig::new(&self.tenant, info.clone()).worker_id(&worker_id);
        let handler = TestHandler::new(self.client.clone(), journal);
        let worker = PushWorker::new(self.client.clone(), self.client.clone(), config, handler);
        let session = worker.session().to_owned();
        let register = api::RegisterWorkerRequest {
            tenant: self.tenant.clone(),
            worker_id,
            session,
            info: Some(info),
        };
        (register, worker)
    }

    pub async fn dispatches(&self) -> Result<Vec<api::Dispatch>> {
        self.dispatches_of(&self.tenant).await
    }

    pub async fn dispatches_of(&self, tenant: &str) -> Result<Vec<api::Dispatch>> {
        let request = api::ListDispatchesRequest {
            tenant: tenant.to_owned(),
            workspace: WORKSPACE.to_owned(),
            ..Default::default()
        };
        let response = self
            .client
            .dispatcher()
            .list_dispatches(request)
            .await
            .context("list dispatches")?;
        Ok(response.into_inner().dispatches)
    }

    /// Starts a pull worker in this process.
    pub fn start_worker(&self, slots: u32) -> WorkerHandle {
        let info = api::WorkerInfo {
            name: "in-process".to_owned(),
            slots,
            handlers: TestHandler::names(),
            ..Default::default()
        };
        let handler = TestHandler::new(self.client.clone(), None);
        let worker = Worker::new(
            self.client.clone(),
            self.client.clone(),
            WorkerConfig::new(&self.tenant, info),
            handler,
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
