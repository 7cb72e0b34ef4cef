//! Locks: one Servo per directory, and one process at a time that chooses ports.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Held while a mesh or a cluster uses a directory; the kernel releases it when the process ends.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl DirLock {
    pub fn take(dir: &Path) -> Result<DirLock> {
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let path = dir.join("lock");
        let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(DirLock { _file: file }),
            Err(TryLockError::WouldBlock) => {
                bail!(
                    "{} is in use by another Servo: stop it, or choose another directory",
                    dir.display()
                )
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("lock {}", path.display()))
            }
        }
    }
}

/// Held from choosing ports until the processes listen on them, because two meshes that start at
/// the same time on one machine would choose the same ports.
#[derive(Debug)]
pub(crate) struct PortsLock {
    _file: File,
}

impl PortsLock {
    /// Waits until the lock is free.
    pub(crate) fn take() -> io::Result<PortsLock> {
        let name = format!("servo-ports-{}.lock", nix::unistd::Uid::effective());
        let file = File::create(std::env::temp_dir().join(name))?;
        file.lock()?;
        Ok(PortsLock { _file: file })
    }
}

/// Held by the owner of a reserved port.
#[derive(Debug)]
pub(crate) struct PortLock {
    _file: File,
}

impl PortLock {
    /// `None` while another process holds it.
    pub(crate) fn take(port: u16) -> Option<PortLock> {
        let name = format!("servo-port-{}-{port}.lock", nix::unistd::Uid::effective());
        let file = File::create(std::env::temp_dir().join(name)).ok()?;
        file.try_lock().ok()?;
        Some(PortLock { _file: file })
    }
}
