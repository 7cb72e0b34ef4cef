//! Quota services with their own database, called as the gateway and as the dispatcher.

use std::sync::atomic::{AtomicU64, Ordering};

use servo_local::{Ca, Issue, TestDatabase, free_port};
use servo_mesh::{
    Caller, Fault, Mesh, NoSections, Peer, PeerIdentity, Reason, Serving, Settings, Shutdown,
    Sources,
};
use servo_model::{Grants, Service, WorkspaceScope};
use servo_proto::mesh::v1::quota_mesh_service_client::QuotaMeshServiceClient;
use servo_proto::v1::quota_service_client::QuotaServiceClient;
use servo_proto::v1::{GetQuotaRequest, GetQuotaResponse, QuotaLimits, UpdateQuotaRequest};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tonic::{Code, Request, Response, Status};

pub(crate) const TENANT: &str = "acme";
pub(crate) const PLATFORM: &str = "-";

pub(crate) type Client = QuotaServiceClient<Peer>;

pub(crate) struct World {
    dir: TempDir,
    pub(crate) database: TestDatabase,
    ports: Vec<u16>,
    shutdown: Shutdown,
}

impl World {
    /// Starts one instance with the defaults of a fresh installation.
    pub(crate) async fn start() -> World {
        World::start_with(1, &[]).await
    }

    pub(crate) async fn start_with(instances: usize, settings: &[(&str, &str)]) -> World {
        let world = World::prepare(instances).await;
        world.launch_all(settings).await;
        world
    }

    /// Prepares everything but the quota service itself.
    pub(crate) async fn prepare(instances: usize) -> World {
        let dir = TempDir::new().unwrap();
        let ca = Ca::load_or_create(dir.path()).unwrap();
        let others = [
            Service::Gateway,
            Service::Dispatcher,
            Service::Scheduler,
            Service::Callback,
        ];
        for service in others.into_iter().chain([Service::Quota]) {
            ca.issue(&Issue::identity(&service.spiffe_id()))
                .unwrap()
                .write(dir.path(), service.name())
                .unwrap();
        }
        let database = TestDatabase::create().await.unwrap();
        let ports = (0..instances).map(|_| free_port().unwrap()).collect();
        World {
            dir,
            database,
            ports,
            shutdown: Shutdown::new(),
        }
    }

    pub(crate) async fn launch_all(&self, settings: &[(&str, &str)]) {
        for port in &self.ports {
            self.launch(*port, settings);
        }
        for instance in 0..self.ports.len() {
            self.until_it_answers(instance).await;
        }
    }

    /// Starts another service and returns its address.
    pub(crate) async fn serve(
        &self,
        service: Service,
        serving: impl FnOnce(&Mesh<NoSections>) -> Serving,
    ) -> String {
        let sources = self
            .sources(service, self.ports[0])
            .set("server.listen", "127.0.0.1:0");
        let bound = serving(&Mesh::new(read(service, &sources), self.shutdown.clone()))
            .bind()
            .await
            .unwrap();
        let address = format!("https://{}", bound.address().unwrap());
        tokio::spawn(bound.until_signal());
        address
    }

    fn launch(&self, port: u16, settings: &[(&str, &str)]) {
        let mut sources = self
            .sources(Service::Quota, port)
            .set("server.listen", format!("127.0.0.1:{port}"))
            .set("database.url", self.database.service_url())
            .set("database.password", self.database.password())
            .set("paging.keys", "0123456789abcdef0123456789abcdef");
        for (key, value) in settings {
            sources = sources.set(*key, value);
        }
        let settings = read(Service::Quota, &sources);
        tokio::spawn(servo_quota::start(Mesh::new(
            settings,
            self.shutdown.clone(),
        )));
    }

    fn sources(&self, service: Service, port: u16) -> Sources {
        let file = |name: String| self.dir.path().join(name).display().to_string();
        Sources::new()
            .set("server.metrics_listen", "127.0.0.1:0")
            .set("server.ready_every", "10ms")
            .set("tls.certificate", file(format!("{service}.crt")))
            .set("tls.key", file(format!("{service}.key")))
            .set("tls.ca", file("ca.crt".to_owned()))
            .set("peers.quota", format!("https://127.0.0.1:{port}"))
    }

    async fn until_it_answers(&self, instance: usize) {
        let mut client = QuotaServiceClient::new(self.peer_of(Service::Gateway, instance));
        let request = || {
            by_user(GetQuotaRequest {
                tenant: TENANT.into(),
            })
        };
        while let Err(status) = client.get_quota(request()).await {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            tokio::task::yield_now().await;
        }
    }

    fn peer_of(&self, service: Service, instance: usize) -> Peer {
        let settings: Settings<NoSections> =
            read(service, &self.sources(service, self.ports[instance]));
        Mesh::new(settings, self.shutdown.clone()).peer(Service::Quota)
    }

    /// A client of the internal methods with the identity of `service`.
    pub(crate) fn internal_client(
        &self,
        service: Service,
        instance: usize,
    ) -> QuotaMeshServiceClient<Peer> {
        QuotaMeshServiceClient::new(self.peer_of(service, instance))
    }

    /// A client with the identity of the gateway.
    pub(crate) fn client(&self) -> Client {
        QuotaServiceClient::new(self.peer_of(Service::Gateway, 0))
    }

    /// Connects as a superuser, to inspect the tables.
    pub(crate) async fn admin(&self) -> PgConnection {
        PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap()
    }

    pub(crate) async fn events(&self) -> i64 {
        let sql = "SELECT count(*) FROM ledger.events WHERE stream = 5 /* quota */";
        sqlx::query_scalar(sql)
            .fetch_one(&mut self.admin().await)
            .await
            .unwrap()
    }

    pub(crate) async fn quota_of(&self, tenant: &str) -> GetQuotaResponse {
        let request = GetQuotaRequest {
            tenant: tenant.into(),
        };
        self.client()
            .get_quota(by(tenant, request))
            .await
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn set_limits(&self, tenant: &str, limits: QuotaLimits) {
        self.client()
            .update_quota(by(tenant, update(tenant, limits)))
            .await
            .unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.drain();
    }
}

fn read<C: serde::de::DeserializeOwned>(service: Service, sources: &Sources) -> Settings<C> {
    Settings::read(service, sources)
        .map_err(|fault: Fault| fault.to_string())
        .unwrap()
}

/// A request of a user of the tenant, as the gateway forwards it.
pub(crate) fn by_user<T>(message: T) -> Request<T> {
    by(TENANT, message)
}

pub(crate) fn by<T>(tenant: &str, message: T) -> Request<T> {
    let caller = Caller {
        peer: PeerIdentity::Service(Service::Gateway),
        tenant: Some(tenant.parse().unwrap()),
        workspaces: WorkspaceScope::All,
        principal: "user:ann".to_owned(),
        grants: Grants::platform(),
        request_id: String::new(),
    };
    let mut request = Request::new(message);
    caller.apply(request.metadata_mut()).unwrap();
    request
}

/// Returns an id that no other request of this process has.
pub(crate) fn new_request_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("request-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn update(tenant: &str, limits: QuotaLimits) -> UpdateQuotaRequest {
    UpdateQuotaRequest {
        tenant: tenant.into(),
        request_id: new_request_id(),
        limits: Some(limits),
        ..Default::default()
    }
}

pub(crate) fn tasks(max: u32) -> QuotaLimits {
    QuotaLimits {
        max_concurrent_tasks: Some(max),
        ..Default::default()
    }
}

/// Asserts that the call is refused for this reason, with a message that contains `part`.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(
    answer: Result<Response<T>, Status>,
    reason: Reason,
    part: &str,
) {
    let status = answer.unwrap_err();
    assert_eq!(
        servo_mesh::error::reason_of(&status),
        Some(reason),
        "{status:?}"
    );
    assert!(
        status.message().contains(part),
        "`{part}` is missing in: {}",
        status.message()
    );
}
