//! The test worker as a separate process.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use servo_local::{Child, MeshInfo, TENANT};
use servo_model::Service;

/// The options of a worker process.
#[derive(Debug, Clone)]
pub struct WorkerProcess {
    tenant: String,
    slots: u32,
    number: usize,
    direct: bool,
    callback: Option<String>,
    journal: Option<PathBuf>,
}

impl Default for WorkerProcess {
    fn default() -> WorkerProcess {
        let tenant = TENANT.to_owned();
        WorkerProcess {
            tenant,
            slots: 16,
            number: 0,
            direct: false,
            callback: None,
            journal: None,
        }
    }
}

impl WorkerProcess {
    #[must_use]
    pub fn tenant(self, tenant: &str) -> WorkerProcess {
        WorkerProcess {
            tenant: tenant.to_owned(),
            ..self
        }
    }

    #[must_use]
    pub fn slots(self, slots: u32) -> WorkerProcess {
        WorkerProcess { slots, ..self }
    }

    /// Which of several gateways, dispatchers and callback instances it connects to.
    #[must_use]
    pub fn at(self, number: usize) -> WorkerProcess {
        WorkerProcess { number, ..self }
    }

    /// Connects to the dispatcher and the callback with a certificate, not through the gateway.
    #[must_use]
    pub fn direct(self) -> WorkerProcess {
        WorkerProcess {
            direct: true,
            ..self
        }
    }

    /// Reports only to this address instead of to the callback.
    #[must_use]
    pub fn reporting_to(self, address: &str) -> WorkerProcess {
        WorkerProcess {
            callback: Some(address.to_owned()),
            ..self
        }
    }

    /// Writes a line for every attempt that begins.
    #[must_use]
    pub fn journal(self, path: &Path) -> WorkerProcess {
        WorkerProcess {
            journal: Some(path.to_owned()),
            ..self
        }
    }

    /// All instances of the callback, its own first, unless another address was set.
    fn callbacks(&self, mesh: &MeshInfo) -> Vec<String> {
        if let Some(address) = &self.callback {
            return vec![address.clone()];
        }
        let mut all = mesh.instances();
        all.retain(|instance| instance.service == Service::Callback);
        all.sort_by_key(|instance| instance.number != self.number);
        all.into_iter()
            .map(|instance| mesh.address(instance))
            .collect()
    }

    /// Starts the process, which ends when the handle is dropped.
    pub fn start(&self, mesh: &MeshInfo, binaries: &Path) -> Result<Child> {
        let mut command = Child::command(&binaries.join("test_worker"));
        command
            .arg("--ca")
            .arg(mesh.ca_path())
            .args(["--server-name", "localhost"]);
        command.args(["--tenant", &self.tenant, "--slots", &self.slots.to_string()]);
        if self.direct {
            let (certificate, key) = mesh.worker_certificate(&self.tenant)?;
            command.args([
                "--dispatcher",
                &mesh.address((Service::Dispatcher, self.number)),
            ]);
            for callback in self.callbacks(mesh) {
                command.args(["--callback", &callback]);
            }
            command
                .arg("--certificate")
                .arg(certificate)
                .arg("--key")
                .arg(key);
        } else {
            command.args([
                "--dispatcher",
                &mesh.address((Service::Gateway, self.number)),
            ]);
            command.env("SERVO_API_KEY", mesh.api_key_of(&self.tenant));
        }
        if let Some(journal) = &self.journal {
            command.arg("--journal").arg(journal);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Child::spawn("test_worker", command).context("start the test worker")
    }
}
