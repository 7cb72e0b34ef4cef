//! Runs and their tasks.

use futures::FutureExt;
use servo_proto::v1 as pb;

use super::call::{Call, Many, One, entries};
use super::{PAGE_SIZE, Workspace, given};

impl Workspace {
    /// Starts a run; with a `run_key`, the same request again finds the same run.
    pub fn trigger(
        &self,
        run: impl Into<pb::RunSpec>,
    ) -> Call<pb::TriggerRunRequest, One<pb::Run>> {
        let asked = pb::TriggerRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            spec: Some(run.into()),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                given(
                    client
                        .scheduler()
                        .trigger_run(asked)
                        .await?
                        .into_inner()
                        .run,
                    "run",
                )
            }
            .boxed()
        })
    }

    pub fn run(&self, run_id: &str) -> Call<pb::GetRunRequest, One<pb::Run>> {
        let asked = pb::GetRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                given(
                    client.scheduler().get_run(asked).await?.into_inner().run,
                    "run",
                )
            }
            .boxed()
        })
    }

    /// Newest first.
    pub fn runs(&self) -> Call<pb::ListRunsRequest, Many<pb::Run>> {
        let asked = pb::ListRunsRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            entries(client, asked, |client, asked, page_token| async move {
                let asked = pb::ListRunsRequest {
                    page_token,
                    ..asked
                };
                let page = client.scheduler().list_runs(asked).await?.into_inner();
                Ok((page.runs, page.next_page_token))
            })
        })
    }

    /// In the plan's order.
    pub fn tasks(&self, run_id: &str) -> Call<pb::ListTasksRequest, Many<pb::Task>> {
        let asked = pb::ListTasksRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            entries(client, asked, |client, asked, page_token| async move {
                let asked = pb::ListTasksRequest {
                    page_token,
                    ..asked
                };
                let page = client.scheduler().list_tasks(asked).await?.into_inner();
                Ok((page.tasks, page.next_page_token))
            })
        })
    }

    /// One task with its attempts and its history.
    pub fn task(
        &self,
        run_id: &str,
        task_id: &str,
    ) -> Call<pb::GetTaskRequest, One<pb::GetTaskResponse>> {
        let asked = pb::GetTaskRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            task_id: task_id.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move { Ok(client.scheduler().get_task(asked).await?.into_inner()) }.boxed()
        })
    }

    pub fn cancel(&self, run_id: &str) -> Call<pb::CancelRunRequest, One<pb::Run>> {
        let asked = pb::CancelRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                given(
                    client.scheduler().cancel_run(asked).await?.into_inner().run,
                    "run",
                )
            }
            .boxed()
        })
    }

    /// A new run of what did not succeed, with the code that the run had, or with what is deployed now
    /// (`use_current_deployment`).
    pub fn retry(&self, run_id: &str) -> Call<pb::RetryRunRequest, One<pb::Run>> {
        let asked = pb::RetryRunRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            async move {
                given(
                    client.scheduler().retry_run(asked).await?.into_inner().run,
                    "run",
                )
            }
            .boxed()
        })
    }

    /// Why each of its tasks waits, or one (`task_id`).
    pub fn explain(&self, run_id: &str) -> Call<pb::ExplainRequest, Many<pb::Explanation>> {
        let asked = pb::ExplainRequest {
            tenant: self.tenant(),
            workspace: self.name(),
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            entries(client, asked, |client, asked, page_token| async move {
                let asked = pb::ExplainRequest {
                    page_token,
                    ..asked
                };
                let page = client.scheduler().explain(asked).await?.into_inner();
                Ok((page.explanations, page.next_page_token))
            })
        })
    }

    /// The tenant's workers.
    pub fn workers(&self) -> Call<pb::ListWorkersRequest, Many<pb::Worker>> {
        let asked = pb::ListWorkersRequest {
            tenant: self.tenant(),
            page_size: PAGE_SIZE,
            ..Default::default()
        };
        self.call(asked, |client, asked| {
            entries(client, asked, |client, asked, page_token| async move {
                let asked = pb::ListWorkersRequest {
                    page_token,
                    ..asked
                };
                let page = client.dispatcher().list_workers(asked).await?.into_inner();
                Ok((page.workers, page.next_page_token))
            })
        })
    }
}
