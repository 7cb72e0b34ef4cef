//! Ports on loopback: the wanted one when it is free, else the next free one.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

/// How far above the wanted port we look before we take any.
const TRIES_MAX: u16 = 200;

/// A port of 127.0.0.1 that nobody listens on.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Hands out ports that are free now and have not been handed out before.
#[derive(Debug, Default)]
pub struct FreePorts {
    taken: HashSet<u16>,
}

impl FreePorts {
    /// `wanted`, or the next port above it for which those at `offsets` (further listeners) are free too.
    pub fn group(&mut self, wanted: u16, offsets: &[u16]) -> Result<u16> {
        for port in wanted..wanted.saturating_add(TRIES_MAX) {
            let further = offsets.iter().map(|offset| port.checked_add(*offset));
            let Some(all) = [Some(port)].into_iter().chain(further).collect::<Option<Vec<u16>>>() else {
                break;
            };
            if all.iter().all(|port| self.is_free(*port)) {
                self.taken.extend(all);
                return Ok(port);
            }
        }
        bail!(
            "no free port between {wanted} and {}: stop what listens there",
            wanted.saturating_add(TRIES_MAX)
        )
    }

    fn is_free(&self, port: u16) -> bool {
        !self.taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_port_moves_on() {
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wanted = busy.local_addr().unwrap().port();
        let mut ports = FreePorts::default();
        let got = ports.group(wanted, &[100]).unwrap();
        assert!(got > wanted);
        assert_ne!(ports.group(wanted, &[100]).unwrap(), got, "a port is handed out once");
    }
}
