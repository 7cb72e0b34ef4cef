//! RegisterWorker: records a worker and tells it which instance to connect to.

use prost::Message as _;
use servo_mesh::{Caller, Error, PeerIdentity};
use servo_model::limits::NAME_BYTES_MAX;
use servo_proto::{proto_time, v1 as pb};
use servo_queue::URL_BYTES_MAX;

use super::Dispatcher;
use super::support::forward::{holder, holds};
use super::support::parse::{parse_worker_id, worker_tenant};
use super::support::workspaces::check_workspaces;
use crate::core::REGISTRATION_TTL;
use crate::core::push_targets::allows;
use crate::{store, wire};
use servo_service::errors;

const SLOTS_MAX: u32 = 10_000;
const NAMES_MAX: usize = 256;

pub(super) async fn register_worker(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::RegisterWorkerRequest,
) -> Result<pb::RegisterWorkerResponse, Error> {
    let worker = parse_worker_id(&request.worker_id)?;
    let info = check(&request)?;
    let tenant = worker_tenant(dispatcher, &request.tenant)?;
    check_workspaces(caller, info)?;
    check_push_url(dispatcher, &info.push_url)?;
    let signer = &dispatcher.signer;
    wire::worker(worker, &request.session, tenant.clone(), info, 0)
        .map_err(|bad| Error::bad_field(bad.field, bad.fault))?;
    let mut tx = dispatcher
        .store
        .requests()
        .begin_in(&tenant)
        .await
        .map_err(errors::store)?;
    let encoded = info.encode_to_vec();
    let (name, session, push_url) = (&info.name, &request.session, &info.push_url);
    store::register_worker(&mut tx, &tenant, worker, name, session, encoded, push_url)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    if !info.push_url.is_empty() {
        dispatcher.push_workers_changed.ring();
    }
    // A worker that came through the gateway cannot reach this instance directly; the gateway finds
    // the holder.
    let direct = matches!(caller.peer, PeerIdentity::Worker { .. });
    let address = match tenant.tenant() {
        Some(tenant) if direct && !holds(dispatcher, tenant) => {
            holder(dispatcher, tenant).await?.unwrap_or_default()
        }
        _ => String::new(),
    };
    Ok(pb::RegisterWorkerResponse {
        address,
        envelope_key: signer
            .worker_key(&tenant, worker, &request.session)
            .to_vec()
            .into(),
        envelope_key_id: signer.envelope_key_id.to_string(),
        renew_before: Some(proto_time(servo_mesh::now().plus(REGISTRATION_TTL))),
        heartbeat_interval: Some(wire::proto_duration(signer.heartbeat_interval)),
    })
}

/// Accepts only addresses that an operator allowed and that fit into the queue.
fn check_push_url(dispatcher: &Dispatcher, url: &str) -> Result<(), Error> {
    if url.len() > URL_BYTES_MAX {
        let fault = format!(
            "has {} bytes; use an address of at most {URL_BYTES_MAX}",
            url.len()
        );
        return Err(Error::bad_field("info.push_url", fault));
    }
    if url.is_empty() || allows(&dispatcher.mesh.config().dispatcher.push.targets, url) {
        return Ok(());
    }
    let fault = "is not covered by dispatcher.push.targets; ask an operator to add it, or register without it and pull";
    Err(Error::bad_field("info.push_url", fault))
}

fn check(request: &pb::RegisterWorkerRequest) -> Result<&pb::WorkerInfo, Error> {
    let info = request
        .info
        .as_ref()
        .ok_or_else(|| Error::bad_field("info", "is not set"))?;
    if !is_name(&request.session) {
        return Err(Error::bad_field(
            "session",
            format!(
                "must have 1 to {NAME_BYTES_MAX} bytes without NUL, and be new for every process"
            ),
        ));
    }
    if !is_name(&info.name) {
        return Err(Error::bad_field(
            "info.name",
            format!("must have 1 to {NAME_BYTES_MAX} bytes without NUL"),
        ));
    }
    if !(1..=SLOTS_MAX).contains(&info.slots) {
        return Err(Error::bad_field(
            "info.slots",
            format!("is {}; 1 to {SLOTS_MAX} are allowed", info.slots),
        ));
    }
    let lists = [
        ("info.workspaces", &info.workspaces),
        ("info.capabilities", &info.capabilities),
        ("info.handlers", &info.handlers),
        ("info.pools", &info.pools),
    ];
    for (field, list) in lists {
        if list.len() > NAMES_MAX || !list.iter().all(|name| is_name(name)) {
            let rule =
                format!("at most {NAMES_MAX} names of 1 to {NAME_BYTES_MAX} bytes are allowed");
            return Err(Error::bad_field(field, rule));
        }
    }
    Ok(info)
}

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains('\0')
}
