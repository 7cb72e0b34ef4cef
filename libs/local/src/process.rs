//! The resource usage of processes of this machine, as the kernel counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts CPU time in hundredths of a second, on every platform we run on.
const TICKS_PER_SECOND: u64 = 100;

/// Resident memory in megabytes.
pub fn memory_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "VmRSS")
}

/// The peak of resident memory of the process, in megabytes.
pub fn peak_memory_mb(pid: u32) -> Result<f64> {
    megabytes(pid, "VmHWM")
}

fn megabytes(pid: u32, field: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = |line: &str| {
        line.strip_prefix(field)?
            .strip_prefix(':')
            .map(str::to_owned)
    };
    let line = status
        .lines()
        .find_map(value)
        .with_context(|| format!("find {field}"))?;
    let kilobytes: f64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .with_context(|| format!("read {field}"))?;
    Ok(kilobytes / 1024.0)
}

/// CPU time of the process and its living children, in user and kernel mode.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let mut ticks = stat(pid)?.ticks;
    for entry in fs::read_dir("/proc")?.flatten() {
        let child = entry.file_name().to_string_lossy().parse::<u32>().ok();
        // A child that has just ended can no longer be read.
        if let Some(child) = child
            .and_then(|child| stat(child).ok())
            .filter(|child| child.parent == pid)
        {
            ticks += child.ticks;
        }
    }
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

struct Stat {
    parent: u32,
    ticks: u64,
}

/// The fields after the name, which is in parentheses and may contain any character.
fn stat(pid: u32) -> Result<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text
        .rsplit_once(") ")
        .context("find the end of the name in /proc/…/stat")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |n: usize| fields.get(n).and_then(|field| field.parse::<u64>().ok());
    let (parent, user, kernel) = (number(1), number(11), number(12));
    let missing = "read /proc/…/stat";
    Ok(Stat {
        parent: u32::try_from(parent.context(missing)?)?,
        ticks: user.context(missing)? + kernel.context(missing)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let me = std::process::id();
        let before = cpu_time(me).unwrap();
        while cpu_time(me).unwrap() == before {
            std::hint::black_box((0..1_000_000u64).sum::<u64>());
        }
        assert!(memory_mb(me).unwrap() > 1.0);
        assert!(peak_memory_mb(me).unwrap() >= memory_mb(me).unwrap());
    }
}
