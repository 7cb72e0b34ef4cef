//! A test mesh with its own authority, in which any of the nine services can be served and called.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::de::DeserializeOwned;
use servo_local::{Ca, Issue};
use servo_mesh::{
    Exposure, Fault, Handler, Mesh, NoSections, Serving, Settings, Shutdown, Sources,
};
use servo_model::{Grants, Role, Service};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::body::Body;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;

/// Long enough for any machine; only ends tests that hang.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) ca: Arc<Ca>,
    dir: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        let world = World {
            ca: Arc::new(Ca::new().unwrap()),
            dir: TempDir::new().unwrap(),
        };
        std::fs::write(world.path("ca.crt"), world.ca.certificate()).unwrap();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes `<name>.crt` and `<name>.key` as the authority issues them.
    pub(crate) fn issue(&self, name: &str, issue: &Issue) {
        self.ca
            .issue(issue)
            .unwrap()
            .write(self.dir.path(), name)
            .unwrap();
    }

    /// Configuration of a service on free ports, with its own certificate.
    pub(crate) fn sources(&self, service: Service) -> Sources {
        if !self.path(&format!("{service}.crt")).exists() {
            self.issue(service.name(), &Issue::identity(&service.spiffe_id()));
        }
        Sources::new()
            .set("server.listen", "127.0.0.1:0")
            .set("server.metrics_listen", "127.0.0.1:0")
            .set(
                "tls.certificate",
                self.path(&format!("{service}.crt")).display(),
            )
            .set("tls.key", self.path(&format!("{service}.key")).display())
            .set("tls.ca", self.path("ca.crt").display())
    }

    pub(crate) fn mesh(&self, service: Service) -> Mesh<NoSections> {
        mesh_of(service, &self.sources(service))
    }

    /// A client that calls `address` as `service`.
    pub(crate) fn peer(
        &self,
        service: Service,
        server: Service,
        address: SocketAddr,
    ) -> servo_mesh::Peer {
        self.mesh(service)
            .peer_at(server, &format!("https://{address}"))
            .unwrap()
    }

    /// A client that is not a mesh peer, with the certificate `name` or none.
    pub(crate) fn raw_client(&self, name: Option<&str>, address: SocketAddr) -> Channel {
        let ca = Certificate::from_pem(self.ca.certificate());
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(ca)
            .domain_name("localhost");
        if let Some(name) = name {
            let read = |suffix| std::fs::read(self.path(&format!("{name}.{suffix}"))).unwrap();
            tls = tls.identity(Identity::from_pem(read("crt"), read("key")));
        }
        let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap();
        endpoint.tls_config(tls).unwrap().connect_lazy()
    }
}

impl World {
    /// A raw TLS connection of a client without a certificate.
    pub(crate) async fn plain_tls(
        &self,
        address: SocketAddr,
        protocol: &[u8],
    ) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.ca.certificate().as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(address).await.unwrap();
        TlsConnector::from(Arc::new(config))
            .connect("localhost".try_into().unwrap(), stream)
            .await
            .unwrap()
    }
}

pub(crate) fn settings<C: DeserializeOwned>(
    service: Service,
    sources: &Sources,
) -> Result<Settings<C>, Fault> {
    Settings::read(service, sources)
}

pub(crate) fn mesh_of(service: Service, sources: &Sources) -> Mesh<NoSections> {
    let settings = settings(service, sources).unwrap_or_else(|fault| panic!("{fault}"));
    Mesh::new(settings, Shutdown::new())
}

/// A service that is served in this process.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) shutdown: Shutdown,
    task: JoinHandle<Result<(), Fault>>,
}

impl Running {
    pub(crate) async fn start(shutdown: Shutdown, serving: Serving) -> Running {
        let bound = serving
            .bind()
            .await
            .unwrap_or_else(|fault| panic!("{fault}"));
        let (address, metrics) = (bound.address().unwrap(), bound.metrics_address().unwrap());
        Running {
            address,
            metrics,
            shutdown,
            task: tokio::spawn(bound.until_signal()),
        }
    }

    /// Waits for the end of the service, which must be orderly.
    pub(crate) async fn ended(self) {
        let ended = tokio::time::timeout(TEST_TIMEOUT, self.task)
            .await
            .expect("it does not end");
        ended.unwrap().unwrap_or_else(|fault| panic!("{fault}"));
    }
}

/// Serves every method of the API with one handler, exposed to the mesh.
pub(crate) async fn serve(mesh: &Mesh<NoSections>, handler: Handler) -> Running {
    let serving = mesh.serving(Exposure::Mesh).with_fallback(handler);
    Running::start(mesh.shutdown().clone(), serving).await
}

pub(crate) fn handler<F, Fut>(answer: F) -> Handler
where
    F: Fn(Request<Body>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<Body>> + Send + 'static,
{
    BoxCloneSyncService::new(tower::service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    }))
}

/// Answers every call with OK and an empty message.
pub(crate) fn accept_all() -> Handler {
    handler(|request| async move {
        match request.into_body().collect().await {
            Ok(_) => ok(),
            Err(status) => status.into_http(),
        }
    })
}

pub(crate) fn ok() -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let empty = Full::new(Bytes::from_static(&[0; 5]))
        .with_trailers(std::future::ready(Some(Ok(trailers))));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(Body::new(empty))
        .unwrap()
}

/// One request with an empty message to `path`.
pub(crate) fn request(path: &str) -> Request<Body> {
    request_with(path, &[])
}

pub(crate) fn request_with(path: &str, message: &[u8]) -> Request<Body> {
    let mut frame = vec![0];
    frame.extend((message.len() as u32).to_be_bytes());
    frame.extend(message);
    Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "30S")
        .body(Body::new(Full::new(Bytes::from(frame))))
        .unwrap()
}

/// Returns the status that a call ends with.
pub(crate) async fn status_of<S, B>(client: S, request: Request<Body>) -> Status
where
    S: tower::Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: http_body::Body<Data = Bytes, Error = Status> + Unpin,
{
    let called = tokio::time::timeout(TEST_TIMEOUT, client.oneshot(request))
        .await
        .expect("no answer");
    let response = match called {
        Ok(response) => response,
        Err(error) => return Status::from_error(error.into()),
    };
    if let Some(status) = Status::from_header_map(response.headers()) {
        return status;
    }
    match tokio::time::timeout(TEST_TIMEOUT, response.into_body().collect())
        .await
        .expect("no end")
    {
        Ok(body) => body
            .trailers()
            .and_then(Status::from_header_map)
            .unwrap_or_else(|| Status::unknown("no trailers")),
        Err(status) => status,
    }
}

pub(crate) async fn code_of<S, B>(client: S, request: Request<Body>) -> Code
where
    S: tower::Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: http_body::Body<Data = Bytes, Error = Status> + Unpin,
{
    status_of(client, request).await.code()
}

pub(crate) const SERVER_INFO: &str = "/servo.v1.MeshService/GetServerInfo";

/// A unary call between services: the scheduler calls the planner.
pub(crate) const MAKE_PLANS: &str = "/servo.mesh.v1.PlannerMeshService/MakePlans";
/// A response stream, called through the gateway.
pub(crate) const WATCH_RUN: &str = "/servo.v1.SchedulerService/WatchRun";

/// A request of tenant `acme` to `path`, as the gateway forwards it for the principal `ada`.
pub(crate) fn from_ada(path: &str) -> Request<Body> {
    let mut request = request_with(path, &scoped("acme", "prod"));
    set_metadata(
        &mut request,
        &[
            ("servo-tenant", "acme"),
            ("servo-workspaces", "-"),
            ("servo-principal", "ada"),
            ("servo-grants", &Grants::of_role(Role::Admin).to_string()),
        ],
    );
    request
}

pub(crate) fn set_metadata(request: &mut Request<Body>, metadata: &[(&'static str, &str)]) {
    for (name, value) in metadata {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
}

/// An encoded message with `tenant = 1` and `workspace = 2`.
pub(crate) fn scoped(tenant: &str, workspace: &str) -> Vec<u8> {
    let mut message = Vec::new();
    for (field, text) in [(1, tenant), (2, workspace)] {
        prost::encoding::string::encode(field, &text.to_owned(), &mut message);
    }
    message
}

/// A response stream that never sends a message.
pub(crate) fn silent_stream() -> Response<Body> {
    let silent = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Status>>());
    Response::builder()
        .header("content-type", "application/grpc")
        .body(Body::new(silent))
        .unwrap()
}

/// Waits until `condition` holds.
pub(crate) async fn until<F: AsyncFnMut() -> bool>(mut condition: F) {
    let holds = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, holds)
        .await
        .expect("the condition never became true");
}

/// A handler that signals when a call arrives and answers when it is released.
#[derive(Clone)]
pub(crate) struct BlockedHandler {
    pub(crate) arrived: Arc<Semaphore>,
    pub(crate) release: Arc<Semaphore>,
}

impl BlockedHandler {
    pub(crate) fn new() -> BlockedHandler {
        BlockedHandler {
            arrived: Arc::new(Semaphore::new(0)),
            release: Arc::new(Semaphore::new(0)),
        }
    }

    pub(crate) fn handler(&self) -> Handler {
        let blocked = self.clone();
        handler(move |_| {
            let blocked = blocked.clone();
            async move {
                blocked.arrived.add_permits(1);
                blocked.release.acquire().await.unwrap().forget();
                ok()
            }
        })
    }

    pub(crate) async fn wait_for_call(&self) {
        tokio::time::timeout(TEST_TIMEOUT, self.arrived.acquire())
            .await
            .expect("no call")
            .unwrap()
            .forget();
    }
}
