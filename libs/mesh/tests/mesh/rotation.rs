//! Certificates and authorities are replaced during calls, and no call may fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use servo_local::{Ca, Issue};
use servo_mesh::{Mesh, NoSections, Peer};
use servo_model::Service;
use tokio::task::JoinSet;
use tonic::Code;

use crate::support::{
    SERVER_INFO, TEST_TIMEOUT, World, accept_all, code_of, mesh_of, request, serve, status_of,
    until,
};

const CALLERS: usize = 8;
const CALLS: usize = 10_000;

/// Two services under load, and the test mesh whose certificates are replaced.
struct Load {
    world: World,
    both: [Mesh<NoSections>; 2],
    done: Arc<AtomicUsize>,
    callers: JoinSet<()>,
}

impl Load {
    fn start(world: World, both: [Mesh<NoSections>; 2], peer: &Peer) -> Load {
        let done = Arc::new(AtomicUsize::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(call_forever(peer.clone(), done.clone()));
        }
        Load {
            world,
            both,
            done,
            callers,
        }
    }

    /// Replaces the leaf certificates first, then the authority: trust both, issue from the new
    /// one, trust only the new one.
    async fn rotate(&mut self, old: &Ca) -> Arc<Ca> {
        self.renew(old).await;
        let new = Ca::new().unwrap();
        self.trust(&[old, &new]).await;
        self.renew(&new).await;
        self.trust(&[&new]).await;
        Arc::new(new)
    }

    async fn renew(&mut self, ca: &Ca) {
        for mesh in &self.both {
            let issue = Issue::identity(&mesh.service().spiffe_id());
            ca.issue(&issue)
                .unwrap()
                .write(self.world.dir(), mesh.service().name())
                .unwrap();
            assert!(mesh.tls().reload(), "a new certificate must be noticed");
        }
        self.settle().await;
    }

    async fn trust(&mut self, authorities: &[&Ca]) {
        let bundle: String = authorities.iter().map(|ca| ca.certificate()).collect();
        std::fs::write(self.world.path("ca.crt"), bundle).unwrap();
        for mesh in &self.both {
            assert!(mesh.tls().reload(), "a new bundle must be noticed");
        }
        self.settle().await;
    }

    /// Lets every caller finish a call before the next step, as an operator would, and fails if a
    /// caller failed.
    async fn settle(&mut self) {
        let target = self.done.load(Ordering::Relaxed) + 2 * CALLERS;
        let settled = async {
            while self.done.load(Ordering::Relaxed) < target {
                if let Some(ended) = self.callers.try_join_next() {
                    ended.unwrap();
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, settled)
            .await
            .expect("no call finishes");
    }
}

async fn call_forever(peer: Peer, done: Arc<AtomicUsize>) {
    loop {
        let status = status_of(peer.clone(), request(SERVER_INFO)).await;
        assert_eq!(status.code(), Code::Ok, "{status}");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_during_rotation_of_certificates_and_authorities() {
    let world = World::new();
    // The test decides when the files are read.
    let mesh = |service| {
        let sources = world.sources(service).set("tls.reload_every", "60m");
        mesh_of(service, &sources)
    };
    let (planner, scheduler) = (mesh(Service::Planner), mesh(Service::Scheduler));
    let running = serve(&planner, accept_all()).await;
    world.issue("outdated", &Issue::identity("spiffe://servo/scheduler"));
    let outdated = world.raw_client(Some("outdated"), running.address);
    let peer = scheduler
        .peer_at(Service::Planner, &format!("https://{}", running.address))
        .unwrap();
    let (mut ca, mut rotations) = (world.ca.clone(), 0);
    let mut load = Load::start(world, [planner, scheduler], &peer);
    while load.done.load(Ordering::Relaxed) < CALLS {
        ca = load.rotate(&ca).await;
        rotations += 1;
    }
    load.callers.shutdown().await;
    println!(
        "{} calls, {rotations} rotations of leaves and authority",
        load.done.load(Ordering::Relaxed)
    );
    let refused = status_of(outdated, request(SERVER_INFO)).await;
    assert_ne!(
        refused.code(),
        Code::Ok,
        "the first authority is removed, so its certificates are refused"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mismatched_files_are_ignored_during_rotation() {
    let world = World::new();
    let planner = world.mesh(Service::Planner);
    let running = serve(&planner, accept_all()).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    assert!(!planner.tls().reload(), "nothing changed");
    let good_key = std::fs::read(world.path("planner.key")).unwrap();
    world.issue("other", &Issue::identity("spiffe://servo/planner"));
    std::fs::copy(world.path("other.key"), world.path("planner.key")).unwrap();
    assert!(
        !planner.tls().reload(),
        "the key belongs to another certificate"
    );
    assert_eq!(code_of(peer.clone(), request(SERVER_INFO)).await, Code::Ok);
    std::fs::write(world.path("planner.key"), good_key).unwrap();
    std::fs::write(world.path("ca.crt"), "no longer a certificate").unwrap();
    assert!(!planner.tls().reload(), "the bundle is broken");
    assert_eq!(code_of(peer, request(SERVER_INFO)).await, Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_files_are_watched() {
    let world = World::new();
    let sources = world
        .sources(Service::Planner)
        .set("tls.reload_every", "5ms");
    let running = serve(&mesh_of(Service::Planner, &sources), accept_all()).await;
    world.issue("scheduler", &Issue::identity("spiffe://servo/scheduler"));
    // The planner trusts only another authority from now on; the scheduler's certificate is of the
    // old one.
    std::fs::write(world.path("ca.crt"), Ca::new().unwrap().certificate()).unwrap();
    let noticed = async {
        let raw_client = || world.raw_client(Some("scheduler"), running.address);
        while code_of(raw_client(), request(SERVER_INFO)).await == Code::Ok {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, noticed)
        .await
        .expect("the new bundle was not noticed");
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_is_closed_when_its_authority_is_removed() {
    let world = World::new();
    let planner = world.mesh(Service::Planner);
    let running = serve(&planner, accept_all()).await;
    world.issue("scheduler", &Issue::identity("spiffe://servo/scheduler"));
    let connected = world.raw_client(Some("scheduler"), running.address);
    assert_eq!(
        code_of(connected.clone(), request(SERVER_INFO)).await,
        Code::Ok
    );
    std::fs::write(world.path("ca.crt"), Ca::new().unwrap().certificate()).unwrap();
    assert!(planner.tls().reload());
    until(async || code_of(connected.clone(), request(SERVER_INFO)).await != Code::Ok).await;
}
