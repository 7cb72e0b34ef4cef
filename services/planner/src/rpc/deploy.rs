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

use super::Planner;
use super::support::blocking::run_blocking;
use super::support::errors::{append_error, store_error};
use super::support::events::{actor, catalog_event, event_id, new_deployment_id};
use super::support::idempotency::RequestKey;
use super::support::parse::{check_request_id, scope};
use crate::core::canonical::parse_manifest;
use crate::core::check::warnings;
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::diff::{assets_made_stale, diff};
use crate::core::refusal::Refusal;
use crate::store::deployments::{self, Current};
use crate::store::{Scope, artifacts, statuses};

const COMMENT_BYTES_MAX: usize = 1024;
/// Limit for a manifest that is referred to by URI.
const MANIFEST_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Leaves space for the other fields within the 4 MiB that clients accept.
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
    let request_key = RequestKey {
        request_id: std::mem::take(&mut request.request_id),
        body,
    };
    if !request.validate_only
        && let Some(answer) = request_key
            .first_answer(&mut planner.begin(&scope).await?, &scope)
            .await?
    {
        return Ok(answer);
    }
    let source = request.source.take();
    let manifest = manifest(planner, &scope, source, &request.manifest_digest).await?;
    let graph = match run_blocking(move || DeploymentGraph::new(manifest)).await? {
        Err(refusal) if request.list_faults => return Ok(faults_response(refusal)),
        checked => Arc::new(checked?),
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
        &request_key,
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
    if length <= MANIFEST_INLINE_BYTES_MAX {
        Ok(())
    } else {
        Err(Error::new(
            Reason::MessageTooLarge,
            format!(
                "the manifest has {length} bytes, {MANIFEST_INLINE_BYTES_MAX} are allowed inline; upload it as an \
                 artifact and give manifest_uri"
            ),
        ))
    }
}

/// Lists all faults that fit into a message, which is about ten thousand.
fn faults_response(refusal: Refusal) -> DeployResponse {
    let faults = if refusal.violations.is_empty() {
        vec![(String::new(), refusal.message)]
    } else {
        refusal.violations
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

/// Returns the manifest, inline or from an uploaded artifact.
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
    let Some(digest_in_uri) = uri.strip_prefix(ARTIFACT_SCHEME) else {
        let sentence =
            "only `artifact:` and a digest are read so far; upload the manifest as an artifact";
        return Err(Error::bad_field("manifest_uri", sentence));
    };
    if digest_in_uri != expected.to_string() {
        return Err(Error::new(
            Reason::DigestMismatch,
            "manifest_uri and manifest_digest name different digests",
        ));
    }
    let bytes = uploaded_manifest(planner, scope, &expected).await?;
    let parsed = run_blocking(move || parse_manifest(&bytes)).await?;
    parsed.map_err(|fault| {
        Error::new(
            Reason::ManifestInvalid,
            format!("the manifest is not valid JSON of servo.v1.Manifest: {fault}"),
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
        .map_err(store_error)?;
    drop(tx);
    let (kind, size) = found.ok_or_else(|| missing_artifact("manifest_uri", digest))?;
    if i32::from(kind) != ArtifactKind::Manifest as i32 {
        return Err(Error::bad_field(
            "manifest_uri",
            "names an artifact that is not a manifest",
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
    if Digest::of(&bytes) == *digest {
        Ok(bytes)
    } else {
        Err(Error::new(
            Reason::DigestMismatch,
            "the stored manifest does not hash to its digest",
        ))
    }
}

fn missing_artifact(field: &str, digest: &Digest) -> Error {
    let sentence = format!("nothing was uploaded under {digest}; upload it first");
    Error::new(Reason::ArtifactNotFound, format!("{field}: {sentence}"))
        .and_bad_field(field, sentence)
}

/// The source archive must be uploaded before anything runs from it.
async fn check_artifacts(
    tx: &mut TenantTx,
    scope: &Scope,
    manifest: &Manifest,
) -> Result<(), Error> {
    let Some(artifact) = &manifest.artifact else {
        return Ok(());
    };
    let digest: Digest = artifact
        .digest
        .parse()
        .map_err(|error: servo_model::ids::IdError| {
            Error::bad_field("artifact.digest", error.to_string())
        })?;
    match artifacts::find(tx, scope, &digest)
        .await
        .map_err(store_error)?
    {
        Some(_) => Ok(()),
        None => Err(missing_artifact("artifact.digest", &digest)),
    }
}

async fn preview(
    planner: &Planner,
    mut tx: TenantTx,
    scope: &Scope,
    request: &DeployRequest,
    graph: &Arc<DeploymentGraph>,
) -> Result<DeployResponse, Error> {
    let current = deployments::read_current(&mut tx, scope)
        .await
        .map_err(store_error)?;
    check_version(request.expected_version, &current)?;
    let diff = diff_against_current(planner, &mut tx, scope, &current, graph).await?;
    let deployment = Some(description(graph, Default::default()));
    Ok(DeployResponse {
        deployment,
        diff: Some(diff),
        warnings: warnings(&graph.manifest),
        ..Default::default()
    })
}

/// Writes rows, answer and event in one transaction, under the lock of the workspace.
async fn register(
    planner: &Planner,
    mut tx: TenantTx,
    scope: &Scope,
    request_key: &RequestKey,
    expected_version: u64,
    graph: Arc<DeploymentGraph>,
    description: Deployment,
) -> Result<DeployResponse, Error> {
    // Compares before taking the lock, because other deployments wait for it.
    let before_lock = deployments::read_current(&mut tx, scope)
        .await
        .map_err(store_error)?;
    let diff = diff_against_current(planner, &mut tx, scope, &before_lock, &graph).await?;
    let current = deployments::lock_current(&mut tx, scope)
        .await
        .map_err(store_error)?;
    // The previous holder of the lock may have answered the same request.
    if let Some(answer) = request_key.first_answer(&mut tx, scope).await? {
        return Ok(answer);
    }
    check_version(expected_version, &current)?;
    let diff = if current.digest == before_lock.digest {
        diff
    } else {
        diff_against_current(planner, &mut tx, scope, &current, &graph).await?
    };
    let (id, version) = (new_deployment_id(), current.version + 1);
    let deployment = Deployment {
        deployment_id: id.to_string(),
        ..description
    };
    let key = IdempotencyKey::deployment_registered(&id, version.unsigned_abs());
    let body = registered_event(&deployment, version);
    let event = catalog_event(scope, EventType::DeploymentRegistered, key.as_str(), body);
    deployments::insert_manifest(&mut tx, scope, &graph.digest, &graph.manifest)
        .await
        .map_err(store_error)?;
    let at = deployments::insert(&mut tx, scope, &id, version, &graph.digest, &deployment)
        .await
        .map_err(store_error)?;
    deployments::set_current(&mut tx, scope, &id, version, &graph.digest)
        .await
        .map_err(store_error)?;
    let answer = DeployResponse {
        deployment: Some(deployments::complete(deployment, version, at, true)),
        diff: Some(diff),
        accepted_event_id: event_id(&event),
        warnings: warnings(&graph.manifest),
        ..Default::default()
    };
    request_key.store_answer(&mut tx, scope, &answer).await?;
    tx.append(&[event]).await.map_err(append_error)?;
    tx.commit().await.map_err(store_error)?;
    planner.cache_graph(graph);
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

async fn diff_against_current(
    planner: &Planner,
    tx: &mut TenantTx,
    scope: &Scope,
    current: &Current,
    graph: &Arc<DeploymentGraph>,
) -> Result<DeploymentDiff, Error> {
    let before = match &current.digest {
        Some(digest) if *digest == graph.digest => return Ok(DeploymentDiff::default()),
        Some(digest) => Some(planner.graph(tx, scope, digest).await?),
        None => None,
    };
    let after = graph.clone();
    let (mut diff, stale) = run_blocking(move || {
        let diff = diff(
            before.as_deref().map(|before| &before.manifest),
            &after.manifest,
        );
        let stale = assets_made_stale(&diff, &after.manifest);
        (diff, stale)
    })
    .await?;
    diff.stale_partitions = statuses::count_stale(tx, scope, stale)
        .await
        .map_err(store_error)?;
    Ok(diff)
}

/// Describes a deployment that does not yet have an id and a version.
fn description(graph: &DeploymentGraph, deployed_by: servo_proto::v1::Actor) -> Deployment {
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

fn registered_event(deployment: &Deployment, version: i64) -> event::Body {
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
