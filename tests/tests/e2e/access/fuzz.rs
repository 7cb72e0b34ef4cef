//! Hostile messages to every public method, generated from the descriptors: no answer may be a
//! fault of Servo, no process may end, and another tenant must not notice.
//!
//! The seed of a run is printed; `SERVO_FUZZ_SEED` repeats it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use prost::Message as _;
use prost::bytes::Bytes;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};
use servo_client::api;
use servo_mesh::error::reason_of;
use servo_model::Role;
use servo_proto::access::Method;
use servo_proto::scope::{ScopeKind, kind_of};
use servo_tests::full;
use servo_tests::manifest::{asset, manifest};
use servo_tests::user::{User, WORKSPACE};
use tonic::transport::Channel;
use tonic::{Code, Status};
use ulid::Ulid;

use super::raw_call::{call, encode, gateway};
use super::{create_objects, fixtures, public_methods, short_path, with_ids};
use crate::support::Running;

const ATTACKER: &str = "mallory";
const QUIET: &str = "quiet";
const CASES_FULL: usize = 20_000;
const CASES_SAMPLE: usize = 250;
/// Levels of messages within messages that a mutation descends.
const DEPTH_MAX: usize = 4;
/// More levels than the decoder accepts.
const NESTING: usize = 200;
const REPEATS: usize = 10_000;
const LONG_TEXT: usize = 1_000_000;
/// Longer messages are refused for their size alone.
const LIST_BYTES_MAX: usize = 2_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn chaos_hostile_messages_get_clear_refusals_and_disturb_nobody() {
    let running = Running::start_with(|options| options.tenant(ATTACKER).tenant(QUIET)).await;
    let attacker = User::at(&running.mesh, 0, ATTACKER).unwrap();
    let ids = create_objects(&attacker).await;
    let before = start_times(&running).await;
    let quiet = QuietTenant::start(&running).await;
    let seed = seed();
    println!("SERVO_FUZZ_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let fixtures = fixtures();
    let methods: Vec<&Method> = public_methods().collect();
    let channel = gateway(&running.mesh);
    let mut faults = Vec::new();
    let cases = if full() { CASES_FULL } else { CASES_SAMPLE };
    for case in 0..cases {
        let method = methods[case % methods.len()];
        let request = with_ids(&fixtures[short_path(method)].request, &ids);
        let request_id = Ulid::generate().to_string();
        let fields = [
            ("tenant", ATTACKER),
            ("workspace", WORKSPACE),
            ("request_id", request_id.as_str()),
        ];
        let (bytes, mutation) = mutated(&mut random, method, encode(method, &request, &fields));
        let unscoped = kind_of(&method.path) == Some(ScopeKind::Unscoped);
        let key = if unscoped {
            running.mesh.platform_key()
        } else {
            running.mesh.key_of_role(ATTACKER, Role::Admin)
        };
        if let Err(status) = call(&channel, method, Some(key), bytes).await
            && let Some(fault) = fault(&status)
        {
            faults.push(format!("{} ({mutation}): {fault}", short_path(method)));
        }
    }
    faults.sort();
    faults.dedup();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert_eq!(start_times(&running).await, before, "a process has ended");
    quiet.stop().await;
}

fn seed() -> u64 {
    let given = std::env::var("SERVO_FUZZ_SEED").ok();
    given.map_or_else(
        || rand::rng().random(),
        |seed| seed.parse().expect("a number"),
    )
}

async fn start_times(running: &Running) -> Vec<String> {
    let status = running.mesh.status().await;
    let alive = status.into_iter().map(|service| {
        assert!(service.healthy, "{} is not healthy", service.service);
        service.start_time
    });
    alive.collect()
}

/// Describes a status that a caller cannot act on.
fn fault(status: &Status) -> Option<String> {
    let forbidden = matches!(
        status.code(),
        Code::Internal | Code::Unknown | Code::Unavailable | Code::DataLoss
    );
    let text = || {
        let message: String = status.message().chars().take(200).collect();
        format!("{:?} {message}", status.code())
    };
    (forbidden || reason_of(status).is_none()).then(text)
}

/// A tenant that reads a run and follows another one, and may see no error.
struct QuietTenant {
    stopped: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
    reader: tokio::task::JoinHandle<()>,
    watcher: tokio::task::JoinHandle<()>,
}

impl QuietTenant {
    async fn start(running: &Running) -> QuietTenant {
        let user = User::at(&running.mesh, 0, QUIET).unwrap();
        user.deploy(manifest(vec![asset("quiet/asset", &[], "")]))
            .await
            .unwrap();
        let run = user.trigger(&["quiet/asset"]).await.unwrap();
        let (stopped, reads) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let reader = tokio::spawn(read(
            user.clone(),
            run.run_id.clone(),
            stopped.clone(),
            reads.clone(),
        ));
        let key = running.mesh.api_key_of(QUIET).to_owned();
        let watcher = tokio::spawn(watch(
            gateway(&running.mesh),
            key,
            run.run_id,
            stopped.clone(),
        ));
        QuietTenant {
            stopped,
            reads,
            reader,
            watcher,
        }
    }

    async fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.reader.await.expect("no read failed");
        // The stream has nothing more to say; that it is still open is what counts.
        assert!(!self.watcher.is_finished(), "the watch ended");
        self.watcher.abort();
        assert!(self.reads.load(Ordering::Relaxed) > 0);
    }
}

async fn read(user: User, run_id: String, stopped: Arc<AtomicBool>, reads: Arc<AtomicUsize>) {
    while !stopped.load(Ordering::Relaxed) {
        user.run(&run_id).await.expect("GetRun of the quiet tenant");
        reads.fetch_add(1, Ordering::Relaxed);
        // A pace, not a wait: reads without a pause would take the processor from the fuzz.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Follows the run without the client's reconnects, which would hide a broken stream.
async fn watch(channel: Channel, key: String, run_id: String, stopped: Arc<AtomicBool>) {
    let mut client = api::scheduler_service_client::SchedulerServiceClient::new(channel);
    let mut request = tonic::Request::new(api::WatchRunRequest {
        tenant: QUIET.to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_id,
        ..Default::default()
    });
    let value = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    let mut stream = client
        .watch_run(request)
        .await
        .expect("WatchRun")
        .into_inner();
    while stream
        .message()
        .await
        .expect("the quiet tenant's watch")
        .is_some()
    {}
    assert!(
        stopped.load(Ordering::Relaxed),
        "the quiet tenant's watch ended"
    );
}

/// A hostile variant of a request, and a word for what was done to it.
fn mutated(random: &mut SmallRng, method: &Method, request: Bytes) -> (Bytes, String) {
    let descriptor = super::raw_call::input(method);
    match random.random_range(0..12) {
        0 => (garbage(random), "garbage".to_owned()),
        1 => (truncated(random, request), "truncated".to_owned()),
        2 => (
            invalid_utf8(random, &descriptor, request),
            "invalid UTF-8".to_owned(),
        ),
        3 => (Bytes::new(), "empty".to_owned()),
        4 => (nested(&descriptor, &request), "deep nesting".to_owned()),
        _ => {
            let mut message = DynamicMessage::decode(descriptor, request).expect("a fixture");
            let mutation = mutate(random, &mut message, DEPTH_MAX);
            (message.encode_to_vec().into(), mutation)
        }
    }
}

fn garbage(random: &mut SmallRng) -> Bytes {
    let length = random.random_range(1..200);
    let mut bytes = vec![0; length];
    random.fill_bytes(&mut bytes);
    bytes.into()
}

fn truncated(random: &mut SmallRng, request: Bytes) -> Bytes {
    match request.len() {
        0 => request,
        length => request.slice(..random.random_range(0..length)),
    }
}

/// Appends a text field with bytes that are not UTF-8.
fn invalid_utf8(random: &mut SmallRng, descriptor: &MessageDescriptor, request: Bytes) -> Bytes {
    let texts: Vec<FieldDescriptor> = descriptor
        .fields()
        .filter(|field| field.kind() == Kind::String)
        .collect();
    let mut bytes = request.to_vec();
    if let Some(field) = texts.choose(random) {
        prost::encoding::bytes::encode(field.number(), &vec![0xff, 0xfe, 0xc0], &mut bytes);
    }
    bytes.into()
}

/// Wraps a message field in itself, more often than the decoder allows.
fn nested(descriptor: &MessageDescriptor, request: &Bytes) -> Bytes {
    let message = descriptor
        .fields()
        .find(|field| matches!(field.kind(), Kind::Message(_)));
    let Some(field) = message else {
        return request.clone();
    };
    let mut inner = Vec::new();
    for _ in 0..NESTING {
        let mut outer = Vec::new();
        prost::encoding::bytes::encode(1, &inner, &mut outer);
        inner = outer;
    }
    let mut bytes = request.to_vec();
    prost::encoding::bytes::encode(field.number(), &inner, &mut bytes);
    bytes.into()
}

/// Changes one field, of the message or of one within it.
fn mutate(random: &mut SmallRng, message: &mut DynamicMessage, depth: usize) -> String {
    let fields: Vec<FieldDescriptor> = message.descriptor().fields().collect();
    let Some(field) = fields.choose(random).cloned() else {
        return "nothing".to_owned();
    };
    let name = field.name().to_owned();
    let value = if field.is_map() {
        Value::Map([(map_key(), map_value(random, &field))].into())
    } else if field.is_list() {
        let item = hostile(random, &field.kind(), depth);
        let count = *[0, 1, 2, REPEATS].choose(random).unwrap();
        let fitting = LIST_BYTES_MAX / size(&item).max(1);
        Value::List(vec![item; count.min(fitting)])
    } else {
        hostile(random, &field.kind(), depth)
    };
    message.set_field(&field, value);
    name
}

/// The rough size of an encoded value.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Message(message) => message.encoded_len(),
        _ => 1,
    }
}

fn map_key() -> prost_reflect::MapKey {
    prost_reflect::MapKey::String("k\0".repeat(300))
}

fn map_value(random: &mut SmallRng, field: &FieldDescriptor) -> Value {
    let Kind::Message(entry) = field.kind() else {
        unreachable!("a map's entries are messages");
    };
    hostile(random, &entry.map_entry_value_field().kind(), 0)
}

fn hostile(random: &mut SmallRng, kind: &Kind, depth: usize) -> Value {
    match kind {
        Kind::Bool => Value::Bool(random.random()),
        Kind::String => Value::String(text(random)),
        Kind::Bytes => Value::Bytes(text(random).into()),
        Kind::Double => Value::F64(*[f64::NAN, f64::INFINITY, -1.0].choose(random).unwrap()),
        Kind::Float => Value::F32(f32::NAN),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Value::I32(*[i32::MIN, -1, 0, i32::MAX].choose(random).unwrap())
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            Value::I64(*[i64::MIN, -1, 0, i64::MAX].choose(random).unwrap())
        }
        Kind::Uint32 | Kind::Fixed32 => Value::U32(*[0, 1, u32::MAX].choose(random).unwrap()),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(*[0, 1, u64::MAX].choose(random).unwrap()),
        Kind::Enum(_) => Value::EnumNumber(*[-1, 0, 1, 9_999].choose(random).unwrap()),
        Kind::Message(descriptor) => {
            let mut message = DynamicMessage::new(descriptor.clone());
            for _ in 0..random.random_range(0..4) {
                if depth > 0 {
                    mutate(random, &mut message, depth - 1);
                }
            }
            Value::Message(message)
        }
    }
}

fn text(random: &mut SmallRng) -> String {
    let texts = [
        String::new(),
        "x".repeat(LONG_TEXT),
        "a\0b".to_owned(),
        "../../etc/passwd".to_owned(),
        "'; DROP TABLE scheduler.runs; --".to_owned(),
        "%n%s{}${jndi:ldap://x}".to_owned(),
        "\u{202e}\u{1f4a5}\u{0301}".repeat(50),
        "-".to_owned(),
        "run_aaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
        "a/b:c".to_owned(),
        "-9223372036854775809".to_owned(),
        "{\"a\":{\"a\":{\"a\":1e999}}}".to_owned(),
        "[".repeat(10_000),
        "state = \"x\" AND (".to_owned(),
        "0".repeat(26),
        "0".repeat(64),
    ];
    texts.choose(random).unwrap().clone()
}
