//! The options of a mesh.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use servo_model::Service;

use crate::postgres::PostgresOptions;

/// The options of a mesh. The default is one instance of each service, with the services' default
/// timings.
#[derive(Debug, Clone)]
pub struct MeshOptions {
    /// The directory for data, certificates, configuration and logs.
    pub dir: PathBuf,
    /// The directory of the service binaries.
    pub binaries: PathBuf,
    /// The binary that serves all services in one process; `None` starts one process per service.
    pub one_process: Option<PathBuf>,
    /// The URL of an existing Postgres with a user that may create roles; `None` starts a private
    /// one.
    pub database_url: Option<String>,
    /// The settings of the private Postgres.
    pub postgres: PostgresOptions,
    /// Tenants in addition to [`crate::TENANT`], each with its own API key.
    pub tenants: Vec<String>,
    /// Whether workers with a certificate of the tenant `-` serve all tenants.
    pub shared_workers: bool,
    /// How fast the loss of a process is detected; `None` uses the defaults of the services.
    pub timings: Option<LivenessTimings>,
    /// The collector that services export their spans to.
    pub otlp_endpoint: Option<String>,
    /// The number of instances of services with more than one.
    pub instances: BTreeMap<Service, usize>,
}

/// Intervals and timeouts for detecting lost processes.
#[derive(Debug, Clone, Copy)]
pub struct LivenessTimings {
    pub heartbeat: Duration,
    pub lease: Duration,
    /// How much longer than needed signatures are valid; `None` uses the default of the services.
    pub signature_grace: Option<Duration>,
}

impl LivenessTimings {
    /// For tests that kill processes: a loss is detected within seconds.
    pub const FAST: LivenessTimings = LivenessTimings {
        heartbeat: Duration::from_secs(1),
        lease: Duration::from_secs(3),
        signature_grace: None,
    };
}

impl MeshOptions {
    pub fn new(dir: impl Into<PathBuf>, binaries: impl Into<PathBuf>) -> MeshOptions {
        MeshOptions {
            dir: dir.into(),
            binaries: binaries.into(),
            one_process: None,
            database_url: None,
            postgres: PostgresOptions::default(),
            tenants: Vec::new(),
            shared_workers: false,
            timings: None,
            otlp_endpoint: None,
            instances: BTreeMap::new(),
        }
    }

    /// Runs `count` instances of a service, at least one. Instance n of one service calls instance
    /// n of another, modulo the number of its instances.
    #[must_use]
    pub fn instances(mut self, service: Service, count: usize) -> MeshOptions {
        self.instances.insert(service, count.max(1));
        self
    }

    #[must_use]
    pub fn tenant(mut self, tenant: &str) -> MeshOptions {
        self.tenants.push(tenant.to_owned());
        self
    }

    #[must_use]
    pub fn shared_workers(mut self) -> MeshOptions {
        self.shared_workers = true;
        self
    }

    #[must_use]
    pub fn timings(mut self, timings: LivenessTimings) -> MeshOptions {
        self.timings = Some(timings);
        self
    }

    #[must_use]
    pub fn otlp_endpoint(mut self, endpoint: &str) -> MeshOptions {
        self.otlp_endpoint = Some(endpoint.to_owned());
        self
    }

    pub(super) fn all_instances(&self) -> Vec<Instance> {
        let of = |service| {
            let count = self.instances.get(&service).copied().unwrap_or(1);
            (0..count).map(move |number| Instance { service, number })
        };
        Service::ALL.into_iter().flat_map(of).collect()
    }
}

/// One process of a service. The name of the first one has no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Instance {
    pub service: Service,
    pub number: usize,
}

impl From<Service> for Instance {
    fn from(service: Service) -> Instance {
        Instance { service, number: 0 }
    }
}

impl From<(Service, usize)> for Instance {
    fn from((service, number): (Service, usize)) -> Instance {
        Instance { service, number }
    }
}

impl From<Instance> for String {
    fn from(instance: Instance) -> String {
        instance.to_string()
    }
}

impl TryFrom<String> for Instance {
    type Error = anyhow::Error;

    fn try_from(name: String) -> Result<Instance> {
        let (service, number) = name.split_once('-').unwrap_or((&name, "0"));
        Ok(Instance {
            service: service.parse()?,
            number: number
                .parse()
                .with_context(|| format!("`{name}` is not the name of an instance"))?,
        })
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => write!(f, "{}", self.service),
            number => write!(f, "{}-{number}", self.service),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_instance_has_the_plain_name_and_others_are_numbered() {
        let options = MeshOptions::new("d", "b").instances(Service::Scheduler, 2);
        let names: Vec<String> = options
            .all_instances()
            .iter()
            .map(Instance::to_string)
            .collect();
        assert_eq!(names.len(), Service::ALL.len() + 1);
        assert_eq!(names[2..4], ["scheduler", "scheduler-1"]);
        let read: Vec<Instance> = names
            .into_iter()
            .map(|name| Instance::try_from(name).unwrap())
            .collect();
        assert_eq!(read, options.all_instances());
    }
}
