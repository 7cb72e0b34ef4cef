//! What a mesh is started with.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use servo_model::Service;

/// How a mesh shall be. The default is one instance of each service, at the services' own pace.
#[derive(Debug, Clone)]
pub struct MeshOptions {
    /// Everything the mesh keeps: data, certificates, configuration, logs.
    pub dir: PathBuf,
    /// Where the service binaries stand.
    pub binaries: PathBuf,
    /// The binary that serves all services in one process; none starts each as a process of its own.
    pub one_process: Option<PathBuf>,
    /// The URL of an existing Postgres, of a user who may create roles; none starts a private one.
    pub database_url: Option<String>,
    /// Tenants beside [`crate::TENANT`], each with an API key of its own.
    pub tenants: Vec<String>,
    /// Whether workers with a certificate of the tenant `-` serve everybody.
    pub shared_workers: bool,
    /// How soon the loss of a process is noticed; none leaves it to the services.
    pub pace: Option<LivenessPace>,
    /// The collector that services export their spans to.
    pub otlp_endpoint: Option<String>,
    /// Where it is more than one.
    pub instances: BTreeMap<Service, usize>,
}

/// How often life is shown, and how long silence is borne.
#[derive(Debug, Clone, Copy)]
pub struct LivenessPace {
    pub heartbeat: Duration,
    pub lease: Duration,
    /// What signatures live beyond what they are for; none leaves it to the services.
    pub signature_grace: Option<Duration>,
}

impl LivenessPace {
    /// For chaos: who is killed is missed within seconds.
    pub const QUICK: LivenessPace = LivenessPace {
        heartbeat: Duration::from_secs(1),
        lease: Duration::from_secs(3),
        signature_grace: None,
    };

    /// The same where signatures, too, end within seconds.
    pub const FORGETFUL: LivenessPace = LivenessPace {
        signature_grace: Some(Duration::from_secs(1)),
        ..LivenessPace::QUICK
    };
}

impl MeshOptions {
    pub fn new(dir: impl Into<PathBuf>, binaries: impl Into<PathBuf>) -> MeshOptions {
        MeshOptions {
            dir: dir.into(),
            binaries: binaries.into(),
            one_process: None,
            database_url: None,
            tenants: Vec::new(),
            shared_workers: false,
            pace: None,
            otlp_endpoint: None,
            instances: BTreeMap::new(),
        }
    }

    /// `count` instances of a service, at least one. Instance n of one service calls instance n of another, or the
    /// one that n wraps around to.
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
    pub fn pace(mut self, pace: LivenessPace) -> MeshOptions {
        self.pace = Some(pace);
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

/// One process of a service. The first bears the service's name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    fn instances_are_numbered_and_the_first_has_the_plain_name() {
        let options = MeshOptions::new("d", "b").instances(Service::Scheduler, 2);
        let names: Vec<String> = options
            .all_instances()
            .iter()
            .map(Instance::to_string)
            .collect();
        assert_eq!(names.len(), Service::ALL.len() + 1);
        assert_eq!(names[2..4], ["scheduler", "scheduler-1"]);
    }
}
