//! Ports on loopback: the preferred one if it is free, otherwise the next free one.

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

use crate::lock::PortLock;

/// How many ports above the preferred one are tried.
const TRIES_MAX: u16 = 200;

/// A free port of 127.0.0.1.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// Reserves ports that are free and not reserved by another process of this user. They stay
/// reserved as long as this value lives, even while a process that listened there was killed and
/// has not been restarted.
#[derive(Debug, Default)]
pub struct FreePorts {
    taken: HashMap<u16, PortLock>,
}

impl FreePorts {
    /// `wanted`, or the next port above it for which the ports at `offsets` (further listeners) are
    /// free too.
    pub fn group(&mut self, wanted: u16, offsets: &[u16]) -> Result<u16> {
        for port in wanted..wanted.saturating_add(TRIES_MAX) {
            let further = offsets.iter().map(|offset| port.checked_add(*offset));
            let Some(all) = [Some(port)]
                .into_iter()
                .chain(further)
                .collect::<Option<Vec<u16>>>()
            else {
                break;
            };
            let locks: Option<Vec<PortLock>> = all.iter().map(|port| self.take(*port)).collect();
            if let Some(locks) = locks {
                self.taken.extend(all.into_iter().zip(locks));
                return Ok(port);
            }
        }
        bail!(
            "no free port between {wanted} and {}: stop what listens there",
            wanted.saturating_add(TRIES_MAX)
        )
    }

    fn take(&self, port: u16) -> Option<PortLock> {
        let lock = PortLock::take(port).filter(|_| !self.taken.contains_key(&port))?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .is_ok()
            .then_some(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_port_is_skipped() {
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wanted = busy.local_addr().unwrap().port();
        let mut ports = FreePorts::default();
        let got = ports.group(wanted, &[100]).unwrap();
        assert!(got > wanted);
        assert_ne!(
            ports.group(wanted, &[100]).unwrap(),
            got,
            "a port is reserved once"
        );
    }

    #[test]
    fn reserved_port_is_not_given_to_others() {
        let wanted = free_port().unwrap();
        let (mut ours, mut theirs) = (FreePorts::default(), FreePorts::default());
        let got = ours.group(wanted, &[]).unwrap();
        assert!(theirs.group(got, &[]).unwrap() > got);
        drop(ours);
        assert_eq!(FreePorts::default().group(got, &[]).unwrap(), got);
    }
}
