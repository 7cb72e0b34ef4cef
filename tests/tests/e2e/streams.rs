//! Streams through the gateway, in both directions and without buffering.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use servo_local::wait::until;
use servo_local::{Ca, Issue, TENANT, TestDatabase, free_port};
use servo_mesh::{Caller, Fault, Mesh, NoSections, Settings, Shutdown, Sources};
use servo_model::Service;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_proto::v1::dispatcher_service_server::{DispatcherService, DispatcherServiceServer};
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_proto::v1::scheduler_service_server::{SchedulerService, SchedulerServiceServer};
use servo_proto::v1::{
    PullTasksRequest, PullTasksResponse, WatchRunRequest, WatchRunResponse, pull_tasks_request,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Response, Status, Streaming};

const KEY: &str = "servo_a_key_for_this_test_only";

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Sends one response for each request message.
struct Echo;

#[tonic::async_trait]
impl DispatcherService for Echo {
    async fn pull_tasks(
        &self,
        request: Request<Streaming<PullTasksRequest>>,
    ) -> Result<Response<ResponseStream<PullTasksResponse>>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        assert_eq!(caller.tenant, Some(TENANT.parse().unwrap()));
        assert_eq!(caller.principal, "tester");
        let responses = request
            .into_inner()
            .map(|message| message.map(|_| PullTasksResponse::default()));
        Ok(Response::new(Box::pin(responses)))
    }
}

/// Sends three changes of a run.
struct Ticker;

#[tonic::async_trait]
impl SchedulerService for Ticker {
    async fn watch_run(
        &self,
        _: Request<WatchRunRequest>,
    ) -> Result<Response<ResponseStream<WatchRunResponse>>, Status> {
        let tokens = ["1", "2", "3"].map(|token| {
            Ok(WatchRunResponse {
                resume_token: token.into(),
                ..Default::default()
            })
        });
        Ok(Response::new(Box::pin(futures::stream::iter(tokens))))
    }
}

/// A gateway, a scheduler and a dispatcher in this process, over TLS.
struct Setup {
    dir: TempDir,
    ports: [(Service, u16); 3],
    shutdown: Shutdown,
    database: TestDatabase,
}

impl Setup {
    async fn new() -> Setup {
        let dir = TempDir::new().unwrap();
        let ca = Ca::load_or_create(dir.path()).unwrap();
        let ports = [Service::Gateway, Service::Scheduler, Service::Dispatcher].map(|service| {
            let identity = Issue::identity(&service.spiffe_id());
            ca.issue(&identity)
                .unwrap()
                .write(dir.path(), service.name())
                .unwrap();
            (service, free_port().unwrap())
        });
        Setup {
            dir,
            ports,
            shutdown: Shutdown::new(),
            database: TestDatabase::create().await.unwrap(),
        }
    }

    fn sources(&self, service: Service) -> Sources {
        let file = |name: String| self.dir.path().join(name).display().to_string();
        let mut sources = Sources::new()
            .set("tls.certificate", file(format!("{service}.crt")))
            .set("tls.key", file(format!("{service}.key")))
            .set("tls.ca", file("ca.crt".into()))
            .set("server.metrics_listen", "127.0.0.1:0");
        for (peer, port) in self.ports {
            sources = sources.set(format!("peers.{peer}"), format!("https://127.0.0.1:{port}"));
            if peer == service {
                sources = sources.set("server.listen", format!("127.0.0.1:{port}"));
            }
        }
        sources
    }

    fn mesh(&self, service: Service) -> Mesh<NoSections> {
        Mesh::new(read(service, &self.sources(service)), self.shutdown.clone())
    }

    async fn start(&self) {
        let scheduler = self
            .mesh(Service::Scheduler)
            .serve(SchedulerServiceServer::new(Ticker))
            .bind()
            .await;
        let dispatcher = self
            .mesh(Service::Dispatcher)
            .serve(DispatcherServiceServer::new(Echo))
            .bind()
            .await;
        tokio::spawn(scheduler.map_err(text_of).unwrap().until_signal());
        tokio::spawn(dispatcher.map_err(text_of).unwrap().until_signal());
        let config = self.dir.path().join("gateway.toml");
        let hash = hex::encode(Sha256::digest(KEY));
        let (url, password) = (self.database.service_url(), self.database.password());
        let text = format!(
            "[database]\nurl = '{url}'\npassword = '{password}'\n[[gateway.api_keys]]\nid = 'tester'\n\
             tenant = '{TENANT}'\nworkspaces = ['main']\nroles = ['admin']\nsha256 = '{hash}'\n"
        );
        std::fs::write(&config, text).unwrap();
        let settings = read(
            Service::Gateway,
            &self.sources(Service::Gateway).file(config),
        );
        tokio::spawn(servo_gateway::start(Mesh::new(
            settings,
            self.shutdown.clone(),
        )));
    }

    async fn client(&self) -> Channel {
        let ca = std::fs::read_to_string(self.dir.path().join("ca.crt")).unwrap();
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
        let endpoint =
            Endpoint::from_shared(format!("https://localhost:{}", self.ports[0].1)).unwrap();
        endpoint.tls_config(tls).unwrap().connect_lazy()
    }
}

fn read<C: serde::de::DeserializeOwned>(service: Service, sources: &Sources) -> Settings<C> {
    Settings::read(service, sources).map_err(text_of).unwrap()
}

fn text_of(fault: Fault) -> String {
    fault.to_string()
}

fn with_key<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("authorization", format!("Bearer {KEY}").parse().unwrap());
    request
}

/// Repeats a call until the gateway is ready.
async fn when_ready<T>(mut call: impl AsyncFnMut() -> Result<T, Status>) -> T {
    until("the gateway to be ready", async || match call().await {
        Ok(response) => Some(response),
        Err(status) if status.code() == tonic::Code::Unavailable => None,
        Err(status) => panic!("{status:?}"),
    })
    .await
}

#[tokio::test]
async fn a_server_stream_arrives_complete_and_in_order() {
    let setup = Setup::new().await;
    setup.start().await;
    let client = SchedulerServiceClient::new(setup.client().await);
    let request = || WatchRunRequest {
        tenant: TENANT.into(),
        workspace: "main".into(),
        ..Default::default()
    };
    let stream = when_ready(async || client.clone().watch_run(with_key(request())).await);
    let messages: Vec<_> = stream
        .await
        .into_inner()
        .map(|message| message.unwrap().resume_token)
        .collect()
        .await;
    assert_eq!(messages, ["1", "2", "3"]);
    setup.shutdown.drain();
}

#[tokio::test]
async fn a_bidirectional_stream_is_not_buffered() {
    let setup = Setup::new().await;
    setup.start().await;
    let client = DispatcherServiceClient::new(setup.client().await);
    let (send, mut responses) = when_ready(async || {
        let (send, receive) = mpsc::channel(1);
        send.send(PullTasksRequest {
            tenant: TENANT.into(),
            ..Default::default()
        })
        .await
        .unwrap();
        let stream = tokio_stream::wrappers::ReceiverStream::new(receive);
        let responses = client.clone().pull_tasks(with_key(stream)).await?;
        Ok((send, responses.into_inner()))
    })
    .await;
    for _ in 0..3 {
        // The next message is sent only after the response to the previous one has arrived.
        let response = tokio::time::timeout(Duration::from_secs(30), responses.message()).await;
        assert!(
            response
                .expect("the gateway forwards messages at once")
                .unwrap()
                .is_some()
        );
        let credits = pull_tasks_request::Message::Credits(Default::default());
        let next = PullTasksRequest {
            tenant: TENANT.into(),
            message: Some(credits),
            ..Default::default()
        };
        send.send(next).await.unwrap();
    }
    drop(send);
    setup.shutdown.drain();
}
