//! Deploy: checks a manifest and makes it the workspace's current deployment.

use std::sync::Arc;

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::MANIFEST_INLINE_BYTES_MAX;
use servo_model::{Digest, EventType};
use servo_proto::v1::deploy_request::Source;
use servo_proto::v1::{
    ArtifactKind, DeployRequest, DeployResponse, Deployment, DeploymentDiff, DeploymentRegistered,
    Manifest, ManifestFault, event,
};
use servo_store::TenantTx;

use super::context::{
    Planner, actor, appended, catalog_event, check_request_id, event_id, new_deployment_id, scope,
    stored, working,
};
use crate::core::canonical::parse_manifest;
use crate::core::deployed::Deployed;
use crate::core::diff::{diff, made_stale};
use crate::core::refusal::Refusal;
use crate::store::deployments::{self, Current};
use crate::store::{Scope, artifacts, requests, statuses};

const COMMENT_BYTES_MAX: usize = 1024;
/// A manifest behind a URI.
const MANIFEST_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// What fits into an answer of 4 MiB, which clients take, with room for what stands around each fault.
const FAULTS_BYTES_MAX: usize = 3 * 1024 * 1024;
const ARTIFACT_SCHEME: &str = "artifact:";

pub(super) async fn deploy(
    planner: &Planner,
    caller: &Caller,
    mut request: DeployRequest,
) -> Result<DeployResponse, Error> {
    let scope = scope(&request)?;
    check_request(&request)?;
    let body = Digest::of([b"Deploy", request.encode_to_vec().as_slice()].concat());
    let once = Once {
        request_id: std::mem::take(&mut request.request_id),
        body,
    };
    if !request.validate_only
        && let Some(answer) = once
            .first_answer(&mut planner.begin(&scope).await?, &scope)
            .await?
    {
        return Ok(answer);
    }
    let source = request.source.take();
    let manifest = manifest(planner, &scope, source, &request.manifest_digest).await?;
    let graph = match working(move || Deployed::new(manifest)).await? {
        Err(refusal) if request.list_faults => return Ok(listed(refusal)),
        made => Arc::new(made?),
    };
    let mut tx = planner.begin(&scope).await?;
    check_artifacts(&mut tx, &scope, &graph.manifest).await?;
    if request.validate_only {
        return preview(planner, tx, &scope, &request, &graph).await;
    }
    let deployed_by = actor(caller, &request.comment);
    let description = description(&graph, deployed_by);
    register(
        planner,
        tx,
        &scope,
        &once,
        request.expected_version,
        graph,
        description,
    )
    .await
}

fn check_request(request: &DeployRequest) -> Result<(), Error> {
    if !request.validate_only {
        check_request_id(&request.request_id)?;
    }
    if request.list_faults && !request.validate_only {
        return Err(Error::bad_field(
            "list_faults",
            "is only for validate_only; what has faults is not deployed",
        ));
    }
    if request.comment.len() > COMMENT_BYTES_MAX {
        let length = request.comment.len();
        return Err(Error::bad_field(
            "comment",
            format!("has {length} bytes; at most {COMMENT_BYTES_MAX} are allowed"),
        ));
    }
    let Some(Source::Manifest(manifest)) = &request.source else {
        return Ok(());
    };
    let length = manifest.encoded_len();
    match length <= MANIFEST_INLINE_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::new(
            Reason::MessageTooLarge,
            format!(
                "the manifest has {length} bytes, {MANIFEST_INLINE_BYTES_MAX} are allowed inline; upload it as an \
                 artifact and give manifest_uri"
            ),
        )),
    }
}

/// Every fault as far as a message goes, which is some ten thousand of them.
fn listed(refusal: Refusal) -> DeployResponse {
    let faults = match refusal.violations.is_empty() {
        true => vec![(String::new(), refusal.message)],
        false => refusal.violations,
    };
    let count = faults.len();
    let mut bytes = 0;
    let fits = |(field, description): &(String, String)| {
        bytes += field.len() + description.len();
        bytes <= FAULTS_BYTES_MAX
    };
    let fault = |(field, description)| ManifestFault { field, description };
    let mut faults: Vec<ManifestFault> = faults.into_iter().take_while(fits).map(fault).collect();
    if faults.len() < count {
        let description = format!("and {} more", count - faults.len());
        faults.push(ManifestFault {
            field: String::new(),
            description,
        });
    }
    DeployResponse {
        faults,
        ..Default::default()
    }
}

/// The manifest itself, wherever it lies.
async fn manifest(
    planner: &Planner,
    scope: &Scope,
    source: Option<Source>,
    digest: &str,
) -> Result<Manifest, Error> {
    let uri = match source {
        Some(Source::Manifest(manifest)) => return Ok(manifest),
        Some(Source::ManifestUri(uri)) => uri,
        None => {
            return Err(Error::bad_field(
                "manifest",
                "is missing; send one or give manifest_uri",
            ));
        }
    };
    let expected: Digest = digest.parse().map_err(|error: servo_model::ids::IdError| {
        Error::bad_field("manifest_digest", error.to_string())
    })?;
    let Some(named) = uri.strip_prefix(ARTIFACT_SCHEME) else {
        let sentence =
            "only `artifact:` and a digest are read so far; upload the manifest as an artifact";
        return Err(Error::bad_field("manifest_uri", sentence));
    };
    if named != expected.to_string() {
        return Err(Error::new(
            Reason::DigestMismatch,
            "manifest_uri and manifest_digest name different digests",
        ));
    }
    let bytes = uploaded_manifest(planner, scope, &expected).await?;
    let parsed = working(move || parse_manifest(&bytes)).await?;
    parsed.map_err(|fault| {
        Error::new(
            Reason::ManifestInvalid,
            format!("the manifest is no JSON form of servo.v1.Manifest: {fault}"),
        )
    })
}

async fn uploaded_manifest(
    planner: &Planner,
    scope: &Scope,
    digest: &Digest,
) -> Result<Vec<u8>, Error> {
    let mut tx = planner.begin(scope).await?;
    let found = artifacts::find(&mut tx, scope, digest)
        .await
        .map_err(stored)?;
    drop(tx);
    let (kind, size) = found.ok_or_else(|| missing_artifact("manifest_uri", digest))?;
    if i32::from(kind) != ArtifactKind::Manifest as i32 {
        return Err(Error::bad_field(
            "manifest_uri",
            "names an artifact that is no manifest",
        ));
    }
    if size.unsigned_abs() > MANIFEST_BYTES_MAX {
        let sentence = format!("the manifest has {size} bytes, {MANIFEST_BYTES_MAX} are allowed");
        return Err(Error::new(Reason::MessageTooLarge, sentence));
    }
    let path = planner.artifacts()?.path(scope, digest);
    let bytes = tokio::fs::read(path)
        .await
        .map_err(|_| missing_artifact("manifest_uri", digest))?;
    match Digest::of(&bytes) == *digest {
        true => Ok(bytes),
        false => Err(Error::new(
            Reason::DigestMismatch,
            "the stored manifest does not hash to its digest",
        )),
    }
}

fn missing_artifact(field: &str, digest: &Digest) -> Error {
    let sentence = format!("nothing was uploaded under {digest}; upload it first");
    Error::new(Reason::ArtifactNotFound, format!("{field}: {sentence}"))
        .and_bad_field(field, sentence)
}

/// Archives must be there before anything runs from them; images lie elsewhere.
async fn check_artifacts(
    tx: &mut TenantTx,
    scope: &Scope,
    manifest: &Manifest,
) -> Result<(), Error> {
    let Some(artifact) = manifest
        .artifact
        .as_ref()
        .filter(|a| a.kind() == ArtifactKind::SourceArchive)
    else {
        return Ok(());
    };
    let digest: Digest = artifact
        .digest
        .parse()
        .map_err(|error: servo_model::ids::IdError| {
            Error::bad_field("artifact.digest", error.to_string())
        })?;
    match artifacts::find(tx, scope, &digest).await.map_err(stored)? {
        Some(_) => Ok(()),
        None => Err(missing_artifact("artifact.digest", &digest)),
    }
}

async fn preview(
    planner: &Planner,
    mut tx: TenantTx,
    scope: &Scope,
    request: &DeployRequest,
    graph: &Arc<Deployed>,
) -> Result<DeployResponse, Error> {
    let current = deployments::read_current(&mut tx, scope)
        .await
        .map_err(stored)?;
    check_version(request.expected_version, &current)?;
    let diff = difference(planner, &mut tx, scope, &current, graph).await?;
    let deployment = Some(description(graph, Default::default()));
    Ok(DeployResponse {
        deployment,
        diff: Some(diff),
        ..Default::default()
    })
}

/// Rows, answer and event in one transaction, under the lock of the workspace.
async fn register(
    planner: &Planner,
    mut tx: TenantTx,
    scope: &Scope,
    once: &Once,
    expected_version: u64,
    graph: Arc<Deployed>,
    description: Deployment,
) -> Result<DeployResponse, Error> {
    // Compared before the lock is taken, for others wait for it.
    let seen = deployments::read_current(&mut tx, scope)
        .await
        .map_err(stored)?;
    let diff = difference(planner, &mut tx, scope, &seen, &graph).await?;
    let current = deployments::lock_current(&mut tx, scope)
        .await
        .map_err(stored)?;
    // Whoever held the lock before may have answered the same request.
    if let Some(answer) = once.first_answer(&mut tx, scope).await? {
        return Ok(answer);
    }
    check_version(expected_version, &current)?;
    let diff = match current.digest == seen.digest {
        true => diff,
        false => difference(planner, &mut tx, scope, &current, &graph).await?,
    };
    let (id, version) = (new_deployment_id(), current.version + 1);
    let deployment = Deployment {
        deployment_id: id.to_string(),
        ..description
    };
    let key = IdempotencyKey::deployment_registered(&id, version.unsigned_abs());
    let body = registered(&deployment, version);
    let event = catalog_event(scope, EventType::DeploymentRegistered, key.as_str(), body);
    let manifest = (&graph.digest, graph.manifest.encode_to_vec());
    let at = deployments::keep(&mut tx, scope, &id, version, manifest, &deployment)
        .await
        .map_err(stored)?;
    let answer = DeployResponse {
        deployment: Some(deployments::complete(deployment, version, at, true)),
        diff: Some(diff),
        accepted_event_id: event_id(&event),
        ..Default::default()
    };
    let kept = requests::keep(
        &mut tx,
        scope,
        &once.request_id,
        &once.body,
        &answer.encode_to_vec(),
    )
    .await;
    if !kept.map_err(stored)? {
        return Err(Error::new(
            Reason::RequestIdReused,
            "request_id was used for another call meanwhile",
        ));
    }
    tx.append(&[event]).await.map_err(appended)?;
    tx.commit().await.map_err(stored)?;
    planner.graphs.keep(graph);
    Ok(answer)
}

fn check_version(expected: u64, current: &Current) -> Result<(), Error> {
    let version = current.version.unsigned_abs();
    if expected == 0 || expected == version {
        return Ok(());
    }
    let message = format!(
        "the current deployment has version {version}, not {expected}; read it and try again"
    );
    Err(Error::new(Reason::VersionConflict, message).with("current_version", version.to_string()))
}

async fn difference(
    planner: &Planner,
    tx: &mut TenantTx,
    scope: &Scope,
    current: &Current,
    graph: &Arc<Deployed>,
) -> Result<DeploymentDiff, Error> {
    let before = match &current.digest {
        Some(digest) if *digest == graph.digest => return Ok(DeploymentDiff::default()),
        Some(digest) => Some(planner.graph(tx, scope, digest).await?),
        None => None,
    };
    let after = graph.clone();
    let (mut diff, stale) = working(move || {
        let diff = diff(
            before.as_deref().map(|before| &before.manifest),
            &after.manifest,
        );
        let stale = made_stale(&diff, &after.manifest);
        (diff, stale)
    })
    .await?;
    diff.stale_partitions = statuses::count_stale(tx, scope, stale)
        .await
        .map_err(stored)?;
    Ok(diff)
}

/// What a deployment says of itself before it has an id and a version.
fn description(graph: &Deployed, deployed_by: servo_proto::v1::Actor) -> Deployment {
    let manifest = &graph.manifest;
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    Deployment {
        manifest_digest: graph.digest.to_string(),
        artifact_digest: manifest
            .artifact
            .as_ref()
            .map(|a| a.digest.clone())
            .unwrap_or_default(),
        code_version: manifest.code_version.clone(),
        labels: manifest.labels.clone(),
        asset_count: count(manifest.assets.len()),
        schedule_count: count(manifest.schedules.len()),
        sensor_count: count(manifest.sensors.len()),
        deployed_by: Some(deployed_by),
        ..Default::default()
    }
}

fn registered(deployment: &Deployment, version: i64) -> event::Body {
    event::Body::DeploymentRegistered(DeploymentRegistered {
        deployment_id: deployment.deployment_id.clone(),
        version: version.unsigned_abs(),
        manifest_digest: deployment.manifest_digest.clone(),
        manifest_uri: String::new(),
        artifact_digest: deployment.artifact_digest.clone(),
        code_version: deployment.code_version.clone(),
        asset_count: deployment.asset_count,
        deployed_by: deployment.deployed_by.clone(),
    })
}

/// A mutation by its request_id, and the hash of what it asks.
pub(super) struct Once {
    pub(super) request_id: String,
    pub(super) body: Digest,
}

impl Once {
    /// What was answered before; another question under the same id is refused.
    pub(super) async fn first_answer<M: Message + Default>(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
    ) -> Result<Option<M>, Error> {
        let Some(first) = requests::find(tx, scope, &self.request_id)
            .await
            .map_err(stored)?
        else {
            return Ok(None);
        };
        if first.body != self.body.as_bytes() {
            let message = "request_id was used before with another body; choose a new one";
            return Err(Error::new(Reason::RequestIdReused, message));
        }
        M::decode(first.answer.as_slice()).map(Some).map_err(|_| {
            Error::new(
                Reason::Internal,
                "the first answer to this request_id cannot be read",
            )
        })
    }
}
