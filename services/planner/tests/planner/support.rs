//! A planner with its own database, called as the gateway and as the scheduler.

use servo_local::{Ca, Issue, TestDatabase, free_port};
use servo_mesh::{
    Caller, Fault, Mesh, NoSections, Peer, PeerIdentity, Reason, Settings, Shutdown, Sources,
};
use servo_model::{Grants, Role, Service, WorkspaceScope};
use servo_proto::mesh::v1::planner_mesh_service_client::PlannerMeshServiceClient;
use servo_proto::v1::code_ref::Target;
use servo_proto::v1::planner_service_client::PlannerServiceClient;
use servo_proto::v1::{
    AssetDefinition, CodeRef, Dependency, DeployRequest, DeployResponse, GetDeploymentRequest,
    Handler, Manifest, deploy_request,
};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tonic::{Code, Request, Response, Status};

pub(crate) const TENANT: &str = "acme";
pub(crate) const WORKSPACE: &str = "prod";

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) database: TestDatabase,
    port: u16,
    shutdown: Shutdown,
}

pub(crate) type Client = PlannerServiceClient<Peer>;

impl World {
    /// Starts a planner and waits until it answers.
    pub(crate) async fn start() -> World {
        let dir = TempDir::new().unwrap();
        let ca = Ca::load_or_create(dir.path()).unwrap();
        for service in [Service::Planner, Service::Gateway, Service::Scheduler] {
            ca.issue(&Issue::identity(&service.spiffe_id()))
                .unwrap()
                .write(dir.path(), service.name())
                .unwrap();
        }
        let database = TestDatabase::create().await.unwrap();
        let world = World {
            dir,
            database,
            port: free_port().unwrap(),
            shutdown: Shutdown::new(),
        };
        let (url, password) = (world.database.service_url(), world.database.password());
        let artifacts = world.dir.path().join("artifacts");
        let sources = world
            .sources(Service::Planner)
            .set("server.listen", format!("127.0.0.1:{}", world.port))
            .set("database.url", url)
            .set("database.password", password)
            .set("paging.keys", "0123456789abcdef0123456789abcdef")
            .set("planner.artifacts", artifacts.display());
        let settings = read(Service::Planner, &sources);
        tokio::spawn(servo_planner::start(Mesh::new(
            settings,
            world.shutdown.clone(),
        )));
        world.until_it_answers().await;
        world
    }

    fn sources(&self, service: Service) -> Sources {
        let file = |name: String| self.dir.path().join(name).display().to_string();
        Sources::new()
            .set("server.metrics_listen", "127.0.0.1:0")
            .set("server.ready_every", "10ms")
            .set("tls.certificate", file(format!("{service}.crt")))
            .set("tls.key", file(format!("{service}.key")))
            .set("tls.ca", file("ca.crt".to_owned()))
            .set("peers.planner", format!("https://127.0.0.1:{}", self.port))
    }

    async fn until_it_answers(&self) {
        let mut client = self.client();
        loop {
            let request = GetDeploymentRequest {
                tenant: TENANT.into(),
                workspace: WORKSPACE.into(),
                ..Default::default()
            };
            match client.get_deployment(by_user(request)).await {
                Err(status) if status.code() == Code::Unavailable => tokio::task::yield_now().await,
                _ => return,
            }
        }
    }

    fn peer_of(&self, service: Service) -> Peer {
        let settings: Settings<NoSections> = read(service, &self.sources(service));
        Mesh::new(settings, self.shutdown.clone()).peer(Service::Planner)
    }

    /// A client with the identity of the gateway.
    pub(crate) fn client(&self) -> Client {
        PlannerServiceClient::new(self.peer_of(Service::Gateway))
    }

    /// A client of the internal methods with the identity of the scheduler.
    pub(crate) fn scheduler(&self) -> PlannerMeshServiceClient<Peer> {
        self.internal_client(Service::Scheduler)
    }

    /// A client of the internal methods with the identity of `service`.
    pub(crate) fn internal_client(&self, service: Service) -> PlannerMeshServiceClient<Peer> {
        PlannerMeshServiceClient::new(self.peer_of(service))
    }

    /// Counts the rows of a table as a superuser.
    pub(crate) async fn count(&self, table: &'static str) -> i64 {
        let mut connection = PgConnection::connect(&self.database.admin_url())
            .await
            .unwrap();
        let sql = match table {
            "deployments" => "SELECT count(*) FROM planner.deployments",
            "manifests" => "SELECT count(*) FROM planner.manifests",
            "plans" => "SELECT count(*) FROM planner.plans",
            "events" => "SELECT count(*) FROM ledger.events",
            "values" => "SELECT count(*) FROM planner.partition_values",
            other => panic!("no query for {other}"),
        };
        sqlx::query_scalar(sql)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    pub(crate) async fn deploy(&self, manifest: Manifest) -> DeployResponse {
        let request = deploy_request(&format!("deploy-{}", rand::random::<u64>()), manifest);
        self.client()
            .deploy(by_user(request))
            .await
            .unwrap()
            .into_inner()
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
    by_user_of(TENANT, message)
}

pub(crate) fn by_user_of<T>(tenant: &str, message: T) -> Request<T> {
    let caller = Caller {
        peer: PeerIdentity::Service(Service::Gateway),
        tenant: Some(tenant.parse().unwrap()),
        workspaces: WorkspaceScope::All,
        principal: "user:ann".to_owned(),
        grants: Grants::of_role(Role::Admin),
        request_id: String::new(),
    };
    let mut request = Request::new(message);
    caller.apply(request.metadata_mut()).unwrap();
    request
}

pub(crate) fn deploy_request(request_id: &str, manifest: Manifest) -> DeployRequest {
    DeployRequest {
        tenant: TENANT.into(),
        workspace: WORKSPACE.into(),
        request_id: request_id.into(),
        source: Some(deploy_request::Source::Manifest(manifest)),
        ..Default::default()
    }
}

pub(crate) fn manifest(assets: Vec<AssetDefinition>) -> Manifest {
    Manifest {
        format: 1,
        assets,
        ..Default::default()
    }
}

pub(crate) fn asset(key: &str, upstream: &[&str]) -> AssetDefinition {
    let dependency = |upstream: &&str| Dependency {
        upstream: (*upstream).to_owned(),
        ..Default::default()
    };
    let handler = Handler {
        name: "noop".to_owned(),
        config_json: String::new(),
    };
    AssetDefinition {
        key: key.to_owned(),
        dependencies: upstream.iter().map(dependency).collect(),
        code: Some(CodeRef {
            target: Some(Target::Handler(handler)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// a -> b -> c
pub(crate) fn chain() -> Manifest {
    manifest(vec![
        asset("n/a", &[]),
        asset("n/b", &["n/a"]),
        asset("n/c", &["n/b"]),
    ])
}

/// Asserts that the call is refused for this reason, with a message that contains `part`.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(
    answer: Result<Response<T>, Status>,
    reason: Reason,
    part: &str,
) -> Status {
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
    status
}
