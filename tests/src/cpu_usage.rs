//! CPU time of each service, of Postgres, and of this process, which is client and worker.

use std::time::Duration;

use anyhow::{Context, Result};
use servo_local::LocalMesh;
use servo_local::process::cpu_time;

/// The CPU time that each process used so far, by name.
pub struct CpuUsage(Vec<(String, Duration)>);

impl CpuUsage {
    /// Reads the times of the mesh, of the Postgres with this process id, and of this process.
    pub fn read(mesh: &LocalMesh, postgres: u32) -> Result<CpuUsage> {
        let mut used: Vec<(String, Duration)> = mesh
            .cpu_times()?
            .into_iter()
            .map(|(instance, used)| (instance.to_string(), used))
            .collect();
        used.push(("postgres".to_owned(), cpu_time(postgres)?));
        used.push(("client and worker".to_owned(), own_cpu_time()?));
        Ok(CpuUsage(used))
    }

    /// One line: the time of each process since `before`, per task, the busiest first.
    pub fn per_task(&self, before: &CpuUsage, tasks: usize) -> String {
        let each = |used: Duration| used.as_secs_f64() * 1e6 / tasks as f64;
        let mut spent: Vec<(&str, f64)> = (self.0.iter().zip(&before.0))
            .map(|((name, now), (_, then))| (name.as_str(), each(now.saturating_sub(*then))))
            .collect();
        spent.sort_by(|a, b| b.1.total_cmp(&a.1));
        let total: f64 = spent.iter().map(|(_, us)| us).sum();
        let parts: Vec<String> = spent
            .iter()
            .filter(|(_, us)| *us >= 1.0)
            .map(|(name, us)| format!("{name} {us:.0}"))
            .collect();
        format!("CPU us per task: {total:.0} = {}", parts.join(" + "))
    }

    /// The share of all cores that all processes together used since `before`. A process that was
    /// restarted counts from its start.
    pub fn percent_of_machine(&self, before: &CpuUsage, elapsed: Duration) -> f64 {
        let used: Duration = self
            .0
            .iter()
            .zip(&before.0)
            .map(|((_, now), (_, then))| now.checked_sub(*then).unwrap_or(*now))
            .sum();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        used.as_secs_f64() / (elapsed.as_secs_f64() * cores as f64) * 100.0
    }

    /// The shares of one core that the services and Postgres used since `before`.
    pub fn percent_of_core(&self, before: &CpuUsage, elapsed: Duration) -> (f64, f64) {
        let (mut services, mut postgres) = (Duration::ZERO, Duration::ZERO);
        for ((name, now), (_, then)) in self.0.iter().zip(&before.0) {
            match name.as_str() {
                "postgres" => postgres += *now - *then,
                "client and worker" => (),
                _ => services += *now - *then,
            }
        }
        let percent = |used: Duration| used.as_secs_f64() / elapsed.as_secs_f64() * 100.0;
        (percent(services), percent(postgres))
    }
}

/// Leaves out the child processes, which are listed under their own names.
fn own_cpu_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').context("read /proc/self/stat")?.1;
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u64>)
        .sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}
