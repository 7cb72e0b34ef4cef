//! Runs and their tasks.

use futures::FutureExt;
use servo_proto::v1 as pb;

use super::call::{Call, ItemStream, ResponseFuture, entries};
use super::{PAGE_SIZE, Workspace, required};

impl Workspace {
    /// Starts a run. With a `run_key`, repeating the same request finds the same run.
    pub fn trigger(
        &self,
        run: impl Into<pb::RunSpec>,
    ) -> Call<pb::TriggerRunRequest, ResponseFuture<pb::Run>> {
        let request = pb::TriggerRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            spec: Some(run.into()),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                required(
                    client
                        .scheduler()
                        .trigger_run(request)
                        .await?
                        .into_inner()
                        .run,
                    "run",
                )
            }
            .boxed()
        })
    }

    pub fn run(&self, run_id: &str) -> Call<pb::GetRunRequest, ResponseFuture<pb::Run>> {
        let request = pb::GetRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                required(
                    client.scheduler().get_run(request).await?.into_inner().run,
                    "run",
                )
            }
            .boxed()
        })
    }

    /// Runs, newest first.
    pub fn runs(&self) -> Call<pb::ListRunsRequest, ItemStream<pb::Run>> {
        let request = pb::ListRunsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(request, |client, request| {
            entries(client, request, |client, request, page_token| async move {
                let request = pb::ListRunsRequest {
                    page_token,
                    ..request
                };
                let page = client.scheduler().list_runs(request).await?.into_inner();
                Ok((page.runs, page.next_page_token))
            })
        })
    }

    /// The tasks of a run in the order of its plan.
    pub fn tasks(&self, run_id: &str) -> Call<pb::ListTasksRequest, ItemStream<pb::Task>> {
        let request = pb::ListTasksRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(request, |client, request| {
            entries(client, request, |client, request, page_token| async move {
                let request = pb::ListTasksRequest {
                    page_token,
                    ..request
                };
                let page = client.scheduler().list_tasks(request).await?.into_inner();
                Ok((page.tasks, page.next_page_token))
            })
        })
    }

    /// ResponseFuture task with its attempts and its history.
    pub fn task(
        &self,
        run_id: &str,
        task_id: &str,
    ) -> Call<pb::GetTaskRequest, ResponseFuture<pb::GetTaskResponse>> {
        let request = pb::GetTaskRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            task_id: task_id.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move { Ok(client.scheduler().get_task(request).await?.into_inner()) }.boxed()
        })
    }

    pub fn cancel(&self, run_id: &str) -> Call<pb::CancelRunRequest, ResponseFuture<pb::Run>> {
        let request = pb::CancelRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                required(
                    client
                        .scheduler()
                        .cancel_run(request)
                        .await?
                        .into_inner()
                        .run,
                    "run",
                )
            }
            .boxed()
        })
    }

    /// Starts a new run of the tasks that did not succeed, with the code of the original run or
    /// with the active deployment (`use_current_deployment`).
    pub fn retry(&self, run_id: &str) -> Call<pb::RetryRunRequest, ResponseFuture<pb::Run>> {
        let request = pb::RetryRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            async move {
                required(
                    client
                        .scheduler()
                        .retry_run(request)
                        .await?
                        .into_inner()
                        .run,
                    "run",
                )
            }
            .boxed()
        })
    }

    /// Why each task of the run waits, or one task (`task_id`).
    pub fn explain(&self, run_id: &str) -> Call<pb::ExplainRequest, ItemStream<pb::Explanation>> {
        let request = pb::ExplainRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(request, |client, request| {
            entries(client, request, |client, request, page_token| async move {
                let request = pb::ExplainRequest {
                    page_token,
                    ..request
                };
                let page = client.scheduler().explain(request).await?.into_inner();
                Ok((page.explanations, page.next_page_token))
            })
        })
    }

    /// The tenant's workers.
    pub fn workers(&self) -> Call<pb::ListWorkersRequest, ItemStream<pb::Worker>> {
        let request = pb::ListWorkersRequest {
            tenant: self.tenant(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(request, |client, request| {
            entries(client, request, |client, request, page_token| async move {
                let request = pb::ListWorkersRequest {
                    page_token,
                    ..request
                };
                let page = client
                    .dispatcher()
                    .list_workers(request)
                    .await?
                    .into_inner();
                Ok((page.workers, page.next_page_token))
            })
        })
    }
}
