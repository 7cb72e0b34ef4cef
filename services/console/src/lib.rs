//! The console: web pages for people. It is an ordinary client of the gateway and stores nothing.
//!
//! The pages are not built yet; the service already runs in the mesh and reports its health.

use servo_mesh::config::NoSections;
use servo_mesh::{Exposure, Fault, Mesh, ServiceFuture};

pub type Config = NoSections;

/// Serves until the process is stopped.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    mesh.serving(Exposure::Mesh).until_signal().await
}
