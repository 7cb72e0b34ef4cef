//! Runs a command with a temporary Postgres cluster, whose URL is in `SERVO_TEST_DATABASE_URL`, and
//! with `--mesh` also with a mesh, whose directory is in `SERVO_TEST_MESH`.
//!
//! `make test` uses it so that hundreds of test processes share one cluster and one mesh.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use servo_local::{LocalMesh, MeshOptions, Postgres, PostgresOptions};
use tokio::runtime::Runtime;

/// Each test claims a tenant of the shared mesh.
const TENANTS: usize = 64;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("with-postgres: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1).peekable();
    let with_mesh = words.next_if(|word| word == "--mesh").is_some();
    let program = words
        .next()
        .context("usage: with-postgres [--mesh] COMMAND [ARGUMENT…]")?;
    let dir = std::env::temp_dir().join(format!("servo-tests-{}", std::process::id()));
    let mut postgres = Postgres::start_with(&dir, PostgresOptions::without_durability())?;
    let mesh = with_mesh
        .then(|| SharedMesh::start(&dir.join("mesh")))
        .transpose()?;
    let mut command = Command::new(&program);
    command
        .args(words)
        .env("SERVO_TEST_DATABASE_URL", postgres.admin_url())
        .envs(mesh.iter().map(SharedMesh::variable));
    let status = command
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    mesh.map_or(Ok(()), SharedMesh::stop)?;
    postgres.stop()?;
    std::fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
    Ok(ExitCode::from(
        u8::try_from(status.code().unwrap_or(1)).unwrap_or(1),
    ))
}

/// A mesh of the binaries in the folder of this one, with a private Postgres and a tenant per test.
struct SharedMesh {
    mesh: LocalMesh,
    dir: PathBuf,
    runtime: Runtime,
}

impl SharedMesh {
    fn start(dir: &Path) -> Result<SharedMesh> {
        let own = std::env::current_exe().context("find this binary")?;
        let binaries = own.parent().context("find the folder of this binary")?;
        let options = MeshOptions {
            postgres: PostgresOptions::without_durability(),
            tenants: (0..TENANTS)
                .map(|number| format!("test-{number:02}"))
                .collect(),
            ..MeshOptions::new(dir, binaries)
        };
        let runtime = Runtime::new().context("start a runtime")?;
        let mesh = runtime
            .block_on(LocalMesh::start(options, |_| ()))
            .context("start the mesh that tests share")?;
        Ok(SharedMesh {
            mesh,
            dir: dir.to_owned(),
            runtime,
        })
    }

    fn variable(&self) -> (&'static str, OsString) {
        ("SERVO_TEST_MESH", self.dir.clone().into_os_string())
    }

    fn stop(self) -> Result<()> {
        self.runtime
            .block_on(self.mesh.stop())
            .context("stop the mesh that tests share")
    }
}
