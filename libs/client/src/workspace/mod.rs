//! The short forms: calls with the tenant and the workspace filled in, named as in the Python client.

mod artifacts;
mod assets;
mod call;
mod run_spec;
mod runs;
mod streams;

use std::sync::Arc;

pub use call::{Call, Many, One};
pub use run_spec::Run;

use crate::client::Client;
use crate::error::Error;

/// Entries that are asked for at once.
const PAGE_SIZE: i32 = 100;

/// A workspace of a tenant. Cheap to clone.
///
/// Its methods give a [`Call`] that is complete as it stands; what may be said beside stands in the fields of its
/// message. Lists and streams are streams of their entries.
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

    /// For everything that has no short form.
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

/// What every good answer holds.
fn given<T>(part: Option<T>, name: &str) -> Result<T, Error> {
    part.ok_or_else(|| Error::Malformed(format!("it holds no {name}")))
}
