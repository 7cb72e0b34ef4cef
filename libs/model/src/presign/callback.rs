//! The path of a worker's call about its attempt.

use std::fmt;
use std::str::FromStr;

use crate::ids::{AttemptId, RunId, TenantId, WorkspaceId};
use crate::text::excerpt;

/// `/v1/tenants/{tenant}/workspaces/{workspace}/runs/{run}/attempts/{attempt}/{verb}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackPath {
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    pub run: RunId,
    pub attempt: AttemptId,
    pub verb: CallbackVerb,
}

impl CallbackPath {
    /// Every callback is a POST, gRPC calls included.
    pub const METHOD: &'static str = "POST";
}

/// The kind of report that a worker sends about its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallbackVerb {
    Start,
    Heartbeat,
    Logs,
    Finished,
}

impl CallbackVerb {
    pub const ALL: [CallbackVerb; 4] = [
        CallbackVerb::Start,
        CallbackVerb::Heartbeat,
        CallbackVerb::Logs,
        CallbackVerb::Finished,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            CallbackVerb::Start => "start",
            CallbackVerb::Heartbeat => "heartbeat",
            CallbackVerb::Logs => "logs",
            CallbackVerb::Finished => "finished",
        }
    }
}

impl fmt::Display for CallbackPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallbackPath {
            tenant,
            workspace,
            run,
            attempt,
            verb,
        } = self;
        write!(
            f,
            "/v1/tenants/{tenant}/workspaces/{workspace}/runs/{run}/attempts/{attempt}/{}",
            verb.name()
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a callback path: write \
     /v1/tenants/TENANT/workspaces/WORKSPACE/runs/RUN/attempts/ATTEMPT/VERB with a verb of start, heartbeat, logs or finished"
)]
pub struct NotACallback(pub String);

impl FromStr for CallbackPath {
    type Err = NotACallback;

    fn from_str(text: &str) -> Result<Self, NotACallback> {
        parse(text).ok_or_else(|| NotACallback(excerpt(text)))
    }
}

fn parse(text: &str) -> Option<CallbackPath> {
    let parts: Vec<&str> = text.split('/').collect();
    let [
        "",
        "v1",
        "tenants",
        tenant,
        "workspaces",
        workspace,
        "runs",
        run,
        "attempts",
        attempt,
        verb,
    ] = parts[..]
    else {
        return None;
    };
    Some(CallbackPath {
        tenant: tenant.parse().ok()?,
        workspace: workspace.parse().ok()?,
        run: run.parse().ok()?,
        attempt: attempt.parse().ok()?,
        verb: CallbackVerb::ALL
            .into_iter()
            .find(|known| known.name() == verb)?,
    })
}
