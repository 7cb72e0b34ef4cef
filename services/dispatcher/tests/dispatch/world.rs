//! A dispatcher with everything it depends on.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use servo_client::worker::{Handler, Worker, WorkerConfig, WorkerHandle};
use servo_client::{Client, Credentials, Tls, api};
use servo_dispatcher::Config;
use servo_local::{Ca, FreePorts, Issue, TestDatabase};
use servo_mesh::{Fault, Mesh, NoSections, Settings, Shutdown, Sources};
use servo_model::{Digest, Grants, Role, RunId, Service, ShardId, Stream};
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use servo_proto::mesh::v1::quota_mesh_service_server::{QuotaMeshService, QuotaMeshServiceServer};
use servo_proto::mesh::v1::scheduler_mesh_service_server::SchedulerMeshServiceServer;
use servo_proto::v1::callback_service_server::CallbackServiceServer;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_store::{DatabaseConfig, LeaseTtl, Leases, Store};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::owner::Owner;
use crate::reports::Reports;

/// Long enough for any machine; a test that hangs fails after it.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const TENANT: &str = "acme";

/// A quota service without limits.
struct Unlimited;

impl QuotaMeshService for Unlimited {}

pub(crate) struct World {
    pub(crate) owner: Owner,
    pub(crate) reports: Reports,
    database: TestDatabase,
    ca: Ca,
    dir: TempDir,
    callback: String,
    quota: String,
    ports: Mutex<FreePorts>,
    _owner_store: Store,
}

impl World {
    pub(crate) async fn start() -> World {
        let (dir, ca) = (TempDir::new().unwrap(), Ca::new().unwrap());
        std::fs::write(dir.path().join("ca.crt"), ca.certificate()).unwrap();
        let database = TestDatabase::create().await.unwrap();
        let owner = Owner::default();
        let reports = Reports::new(owner.clone());
        let config = DatabaseConfig::new(database.service_url(), database.password());
        let store = Store::connect(Service::Scheduler, &config).unwrap();
        let mut world = World {
            owner,
            reports,
            database,
            ca,
            dir,
            callback: String::new(),
            quota: String::new(),
            ports: Mutex::default(),
            _owner_store: store.clone(),
        };
        let scheduler = SchedulerMeshServiceServer::new(world.owner.clone());
        let address = world
            .serve(Service::Scheduler, |mesh| mesh.serve(scheduler))
            .await;
        let ttl = LeaseTtl::new(Duration::from_secs(3600)).unwrap();
        let leases = Leases::new(store.loops(), Stream::Execution, "owner", &address, ttl);
        let all: Vec<ShardId> = Stream::Execution.shards().collect();
        let acquired = leases.acquire(&all, all.len()).await.unwrap();
        assert_eq!(acquired.len(), all.len());
        let callback = CallbackServiceServer::new(world.reports.clone());
        world.callback = world
            .serve(Service::Callback, |mesh| mesh.serve(callback))
            .await;
        world.quota = world
            .serve(Service::Quota, |mesh| {
                mesh.serve(QuotaMeshServiceServer::new(Unlimited))
            })
            .await;
        world
    }

    async fn serve(
        &self,
        service: Service,
        build: impl FnOnce(&Mesh<NoSections>) -> servo_mesh::Serving,
    ) -> String {
        let settings = Settings::read(service, &self.sources(service, "127.0.0.1:0")).unwrap();
        let bound = build(&Mesh::new(settings, Shutdown::new()))
            .bind()
            .await
            .unwrap();
        let address = format!("https://{}", bound.address().unwrap());
        tokio::spawn(bound.until_signal());
        address
    }

    fn sources(&self, service: Service, listen: &str) -> Sources {
        let path = |suffix| self.dir.path().join(format!("{service}.{suffix}"));
        if !path("crt").exists() {
            self.issue(service.name(), &service.spiffe_id());
        }
        Sources::new()
            .set("server.listen", listen)
            .set("server.metrics_listen", "127.0.0.1:0")
            .set("tls.certificate", path("crt").display())
            .set("tls.key", path("key").display())
            .set("tls.ca", self.dir.path().join("ca.crt").display())
    }

    fn issue(&self, name: &str, identity: &str) {
        self.ca
            .issue(&Issue::identity(identity))
            .unwrap()
            .write(self.dir.path(), name)
            .unwrap();
    }

    /// Starts one more instance of the dispatcher.
    pub(crate) async fn dispatcher(&self) -> Running {
        let port = self.ports.lock().unwrap().group(first_port(), &[]).unwrap();
        let file: PathBuf = self.dir.path().join(format!("dispatcher-{port}.toml"));
        let keys = format!(
            "[dispatcher]\nlease_ttl = \"3s\"\nshared_workers = true\n\
             [[attempts.signing_keys]]\nkid = \"k1\"\nsecret = \"{SECRET}\"\n"
        );
        std::fs::write(&file, keys).unwrap();
        let sources = self
            .sources(Service::Dispatcher, &format!("127.0.0.1:{port}"))
            .file(file)
            .set("database.url", self.database.service_url())
            .set("database.password", self.database.password())
            .set("paging.keys", "0123456789abcdef0123456789abcdef")
            .set("peers.quota", &self.quota);
        let settings: Settings<Config> = Settings::read(Service::Dispatcher, &sources).unwrap();
        let shutdown = Shutdown::new();
        let mesh = Mesh::new(settings, shutdown.clone());
        let start = servo_dispatcher::start(mesh);
        let task = tokio::spawn(async move {
            start
                .await
                .inspect_err(|fault| eprintln!("no dispatcher: {fault}"))
        });
        Running {
            address: format!("https://127.0.0.1:{port}"),
            shutdown,
            task,
        }
    }

    fn tls(&self) -> Tls {
        Tls::new(self.ca.certificate()).server_name("localhost")
    }

    /// Returns a client with a worker's certificate.
    pub(crate) fn worker_client(&self, tenant: &str, address: &str) -> Client {
        let pair = self
            .ca
            .issue(&Issue::identity(&format!("spiffe://servo/worker/{tenant}")))
            .unwrap();
        let credentials = Credentials::Certificate {
            certificate: pair.certificate,
            key: pair.key,
        };
        Client::connect(address, &self.tls(), credentials).unwrap()
    }

    pub(crate) fn callback_client(&self, tenant: &str) -> Client {
        self.worker_client(tenant, &self.callback)
    }

    /// Starts a worker in this process.
    pub(crate) fn worker<H: Handler>(
        &self,
        running: &Running,
        tenant: &str,
        info: api::WorkerInfo,
        handler: H,
    ) -> (WorkerHandle, JoinHandle<Result<(), servo_client::Error>>) {
        let config = WorkerConfig::new(tenant, info);
        let dispatcher = self.worker_client(tenant, &running.address);
        let worker = Worker::new(dispatcher, self.callback_client(tenant), config, handler);
        (worker.handle(), tokio::spawn(worker.run()))
    }

    /// Returns a client of the API as the gateway calls it for `ada` of this tenant, or as another
    /// service calls it.
    pub(crate) fn peer(
        &self,
        service: Service,
        running: &Running,
    ) -> DispatcherServiceClient<servo_mesh::Peer> {
        DispatcherServiceClient::new(self.connection(service, running))
    }

    /// Returns a client of the internal methods with the identity of `service`.
    pub(crate) fn internal_client(
        &self,
        service: Service,
        running: &Running,
    ) -> DispatcherMeshServiceClient<servo_mesh::Peer> {
        DispatcherMeshServiceClient::new(self.connection(service, running))
    }

    fn connection(&self, service: Service, running: &Running) -> servo_mesh::Peer {
        let settings: Settings<NoSections> =
            Settings::read(service, &self.sources(service, "127.0.0.1:0")).unwrap();
        let mesh = Mesh::new(settings, Shutdown::new());
        mesh.peer_at(Service::Dispatcher, &running.address).unwrap()
    }

    /// Stores a plan of `tasks` independent tasks and offers them as one run.
    pub(crate) async fn run(&self, number: u8, tasks: u32, asset: api::PlannedAsset) -> RunId {
        let run = RunId::from_bytes([number; 16]);
        let asset = api::PlannedAsset {
            asset_key: "raw/a".into(),
            ..asset
        };
        let task = |ordinal: u32| api::PlannedTask {
            task_key: format!("raw/a[n=i:{ordinal}]:materialize"),
            partition_key: format!("n=i:{ordinal}"),
            ..api::PlannedTask::default()
        };
        let plan = api::Plan {
            tenant: TENANT.into(),
            workspace: "prod".into(),
            assets: vec![asset],
            tasks: (0..tasks).map(task).collect(),
            ..api::Plan::default()
        };
        let plan_id = Digest::of(plan.encode_to_vec());
        let mut connection = PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap();
        let store = "INSERT INTO planner.plans (tenant, workspace, plan_id, plan) VALUES ($1, 'prod', $2, $3)
            ON CONFLICT DO NOTHING";
        sqlx::query(store)
            .bind(TENANT)
            .bind(plan_id.as_bytes().as_slice())
            .bind(plan.encode_to_vec())
            .execute(&mut connection)
            .await
            .unwrap();
        self.owner.offer(run, plan_id, &plan);
        run
    }

    /// Changes the database directly.
    pub(crate) async fn change(&self, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap();
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }

    /// Returns the holder of each admission shard.
    pub(crate) async fn holders(&self) -> Vec<String> {
        let mut connection = PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap();
        let held = "SELECT address FROM ledger.shards WHERE stream = 6 AND lease_until > clock_timestamp()";
        sqlx::query_scalar(held)
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }
}

/// Tests run in parallel, each in its own process. With one common first port, two of them could
/// find the same port free. Ephemeral ports begin above this range.
fn first_port() -> u16 {
    let offset = u16::try_from(std::process::id() % 1_000).unwrap_or_default();
    21_000 + 10 * offset
}

/// A running dispatcher.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) shutdown: Shutdown,
    pub(crate) task: JoinHandle<Result<(), Fault>>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.shutdown.drain();
        tokio::time::timeout(TEST_TIMEOUT, self.task)
            .await
            .expect("it does not end")
            .unwrap()
            .unwrap();
    }
}

pub(crate) fn slots(slots: u32) -> api::WorkerInfo {
    api::WorkerInfo {
        name: "worker".into(),
        slots,
        ..api::WorkerInfo::default()
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until<F: AsyncFnMut() -> bool>(what: &str, mut condition: F) {
    let holds = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, holds)
        .await
        .unwrap_or_else(|_| panic!("it never came true: {what}"));
}

/// Returns an id that no other request of this process has.
pub(crate) fn new_request_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("request-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

/// A message as `ada` sends it through the gateway.
pub(crate) fn from_ada<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    for (name, value) in [
        ("servo-tenant", TENANT),
        ("servo-principal", "user:ada"),
        ("servo-workspaces", "-"),
        ("servo-grants", &Grants::of_role(Role::Admin).to_string()),
    ] {
        request.metadata_mut().insert(name, value.parse().unwrap());
    }
    request.set_timeout(TEST_TIMEOUT);
    request
}

pub(crate) type Shared<T> = Arc<std::sync::Mutex<T>>;
