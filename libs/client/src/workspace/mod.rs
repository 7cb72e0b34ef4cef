//! Short forms of the common calls, with the tenant and the workspace filled in and the same names
//! as in the Python client.

mod artifacts;
mod assets;
mod call;
mod run_spec;
mod runs;
mod streams;

use std::sync::Arc;

pub use call::{Call, ItemStream, ResponseFuture};
pub use run_spec::Run;

use crate::client::Client;
use crate::error::Error;

/// The number of entries per page.
const PAGE_SIZE: i32 = 100;

/// A workspace of a tenant. Cheap to clone.
///
/// Its methods return a [`Call`] that can be sent unchanged; further options are fields of its
/// request. Lists and streams are streams of their entries.
#[derive(Debug, Clone)]
pub struct Workspace {
    client: Client,
    tenant: Arc<str>,
    name: Arc<str>,
}

impl Client {
    pub fn workspace(&self, tenant: &str, workspace: &str) -> Workspace {
        Workspace {
            client: self.clone(),
            tenant: tenant.into(),
            name: workspace.into(),
        }
    }
}

impl Workspace {
    /// The same caller and connection, in another workspace of the tenant.
    #[must_use]
    pub fn in_workspace(&self, workspace: &str) -> Workspace {
        Workspace {
            name: workspace.into(),
            ..self.clone()
        }
    }

    /// The client, for calls without a short form.
    pub fn client(&self) -> &Client {
        &self.client
    }

    fn tenant(&self) -> String {
        self.tenant.to_string()
    }

    fn name(&self) -> String {
        self.name.to_string()
    }

    fn call<M, A>(&self, message: M, make: fn(Client, M) -> A) -> Call<M, A> {
        Call::new(self.client.clone(), message, make)
    }
}

/// A part that every valid response has.
fn required<T>(part: Option<T>, name: &str) -> Result<T, Error> {
    part.ok_or_else(|| Error::Malformed(format!("it has no {name}")))
}
