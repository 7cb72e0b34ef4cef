//! The console: pages for people, a client of the gateway like any other. It keeps no rows.
//!
//! The pages are not built yet; the service already takes its place in the mesh and tells its health.

use servo_mesh::config::NoSections;
use servo_mesh::{Exposure, Fault, Mesh, ServiceFuture};

pub type Config = NoSections;

/// Serves until the process is told to stop.
pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
    Box::pin(serve(mesh))
}

async fn serve(mesh: Mesh<Config>) -> Result<(), Fault> {
    mesh.serving(Exposure::Mesh).until_signal().await
}
