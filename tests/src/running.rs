//! A whole mesh for tests: one of their own, or one that they share.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use servo_local::{LocalMesh, MeshInfo, MeshOptions, PostgresOptions, TENANT};
use tempfile::TempDir;

use crate::full;
use crate::user::User;

/// The environment variable with the directory of the mesh that `with-postgres --mesh` started.
const SHARED_MESH: &str = "SERVO_TEST_MESH";
/// The tenants of a mesh that only one test uses: its own, and another one.
const TENANTS: [&str; 2] = ["test-00", "test-01"];

/// The folder of the binaries that were built together with this test.
pub fn binaries() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this test");
    let folder = own
        .parent()
        .and_then(Path::parent)
        .expect("this test is in deps/")
        .to_path_buf();
    assert!(
        folder.join("servo-gateway").exists(),
        "build the services first: `make test` does"
    );
    folder
}

/// A mesh that only this test uses, in a temporary directory.
///
/// For tests that stop or configure services, or that count rows or metrics of the whole mesh; all
/// others use [`Running::shared`], which costs no start.
pub struct Running {
    pub mesh: LocalMesh,
    dir: TempDir,
}

impl Running {
    pub async fn start() -> Running {
        Running::start_with(|options| options).await
    }

    pub async fn start_with(configure: impl FnOnce(MeshOptions) -> MeshOptions) -> Running {
        Running::try_start(configure)
            .await
            .expect("the mesh starts")
    }

    /// A tenant of the mesh that all tests of this run share. Without such a mesh (a test that is
    /// run alone) starts one.
    pub async fn shared() -> SharedMesh {
        SharedMesh::attach_or_start()
            .await
            .expect("the shared mesh is reachable")
    }

    async fn try_start(configure: impl FnOnce(MeshOptions) -> MeshOptions) -> Result<Running> {
        let dir = TempDir::new().context("create a directory")?;
        let options = MeshOptions {
            postgres: postgres_options(),
            ..MeshOptions::new(dir.path().join("servo"), binaries())
        };
        Ok(Running {
            mesh: LocalMesh::start(configure(options), |_| ()).await?,
            dir,
        })
    }

    /// A path next to the mesh's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// Only the full counts need a Postgres that waits for the disk, and tests that kill it.
fn postgres_options() -> PostgresOptions {
    if full() {
        PostgresOptions::default()
    } else {
        PostgresOptions::without_durability()
    }
}

/// Keeps commits through a kill of Postgres.
pub fn durable(options: MeshOptions) -> MeshOptions {
    MeshOptions {
        postgres: PostgresOptions::default(),
        ..options
    }
}

/// A mesh that other tests use at the same time, and a tenant that only this test uses.
pub struct SharedMesh {
    pub mesh: MeshInfo,
    tenant: String,
    /// Keeps the mesh running if this test had to start it.
    _own: Option<Running>,
}

impl SharedMesh {
    async fn attach_or_start() -> Result<SharedMesh> {
        let (mesh, own) = match std::env::var_os(SHARED_MESH) {
            Some(dir) => (MeshInfo::attach(Path::new(&dir))?, None),
            None => {
                let with_tenants = |options| {
                    TENANTS
                        .iter()
                        .fold(options, |options: MeshOptions, tenant| {
                            options.tenant(tenant)
                        })
                };
                let own = Running::try_start(with_tenants).await?;
                (MeshInfo::clone(&own.mesh), Some(own))
            }
        };
        Ok(SharedMesh {
            tenant: claim_tenant(&mesh)?,
            mesh,
            _own: own,
        })
    }

    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// A user of this test's tenant.
    pub fn user(&self) -> User {
        User::at(&self.mesh, 0, &self.tenant).expect("the gateway's address and key")
    }

    /// A user of another tenant that no other test uses either.
    pub fn other_user(&self) -> User {
        let tenant = claim_tenant(&self.mesh).expect("a second tenant");
        User::at(&self.mesh, 0, &tenant).expect("the gateway's address and key")
    }
}

/// Claims a tenant by creating a file that must not exist, because every test is a process.
fn claim_tenant(mesh: &MeshInfo) -> Result<String> {
    let dir = mesh.dir().join("claimed");
    fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    for tenant in mesh.tenants().filter(|tenant| *tenant != TENANT) {
        match File::create_new(dir.join(tenant)) {
            Ok(_) => return Ok(tenant.to_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context("claim a tenant"),
        }
    }
    bail!("all tenants of the shared mesh are claimed; with-postgres must create more")
}
