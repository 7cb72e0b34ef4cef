//! Reading the whole configuration of a service.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use servo_model::Service;

use crate::config::{self, Common, ForeignKeys, Node, Sources, read};
use crate::fault::{ConfigFault, Fault};
use crate::tls::Tls;

const COMMON_SECTIONS: [&str; 4] = ["server", "tls", "peers", "telemetry"];
// One file may configure the whole mesh, so a section that another service reads is not a typo.
const SHARED_SECTIONS: [&str; 3] = ["attempts", "database", "paging"];

/// A service's validated configuration: the common sections, its own sections, its certificates.
pub struct Settings<C> {
    pub service: Service,
    pub common: Common,
    pub own: C,
    pub tls: Tls,
}

impl<C: DeserializeOwned> Settings<C> {
    /// Reads all layers and the certificates they name. Fails with every fault that was found.
    pub fn read(service: Service, sources: &Sources) -> Result<Settings<C>, Fault> {
        let tree = sources.tree().map_err(Fault::Config)?;
        let (common_part, own_part) = tree.split(&COMMON_SECTIONS);
        let (tls_part, common_part) = common_part.split(&["tls"]);
        let tls =
            read(&tls_part, &ForeignKeys::default()).and_then(|part| load(service, part, &tree));
        let common =
            read(&common_part, &ForeignKeys::default()).and_then(|part| checked(part, &tree));
        let foreign_keys = ForeignKeys {
            known: &COMMON_SECTIONS,
            ignored: &foreign_sections(service),
        };
        let own = read(&own_part, &foreign_keys);
        match (common, tls, own) {
            (Ok(common), Ok(tls), Ok(own)) => Ok(Settings {
                service,
                common,
                own,
                tls,
            }),
            (common, tls, own) => Err(all_of([common.err(), tls.err(), own.err()])),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsPart {
    tls: config::Tls,
}

fn load(service: Service, part: TlsPart, tree: &Node) -> Result<Tls, Vec<ConfigFault>> {
    let mut faults = config::check::tls(&part.tls, tree);
    match Tls::load(service, part.tls) {
        Ok(tls) if faults.is_empty() => Ok(tls),
        loaded => {
            faults.extend(loaded.err().into_iter().flatten());
            Err(faults)
        }
    }
}

fn checked(common: Common, tree: &Node) -> Result<Common, Vec<ConfigFault>> {
    let faults = config::check::common(&common, tree);
    if faults.is_empty() {
        Ok(common)
    } else {
        Err(faults)
    }
}

/// Sections that other services read. The service's own sections are fields of its type.
fn foreign_sections(service: Service) -> Vec<&'static str> {
    let others = Service::ALL
        .into_iter()
        .filter(|other| *other != service)
        .map(Service::name);
    others.chain(SHARED_SECTIONS).collect()
}

fn all_of<const N: usize>(faults: [Option<Vec<ConfigFault>>; N]) -> Fault {
    let mut all: Vec<ConfigFault> = faults.into_iter().flatten().flatten().collect();
    all.sort();
    Fault::Config(all)
}
