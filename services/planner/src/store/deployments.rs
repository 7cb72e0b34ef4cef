//! Manifests, deployments, and the current deployment of each workspace.

use prost::Message;
use servo_model::{DeploymentId, Digest, TenantId, Timestamp, WorkspaceId};
use servo_proto::proto_time;
use servo_proto::v1::{Deployment, Manifest};
use servo_store::{LoopStore, StoreError, Tx, query, sqlx};
use uuid::Uuid;

use super::{Scope, scoped};

/// The current deployment of a workspace; version 0 before the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current {
    pub(crate) version: i64,
    pub(crate) digest: Option<Digest>,
}

/// A row of `planner.deployments` and the current version of the workspace.
#[derive(Debug)]
pub(crate) struct DeploymentRow {
    pub(crate) version: i64,
    digest: Vec<u8>,
    deployment: Vec<u8>,
    created_at: Timestamp,
    current_version: i64,
}

type Columns = (i64, Vec<u8>, Vec<u8>, Timestamp, i64);

impl DeploymentRow {
    fn new((version, digest, deployment, created_at, current_version): Columns) -> DeploymentRow {
        DeploymentRow {
            version,
            digest,
            deployment,
            created_at,
            current_version,
        }
    }

    pub(crate) fn digest(&self) -> Result<Digest, StoreError> {
        digest(&self.digest)
    }

    /// Returns the message with the values of the columns filled in.
    pub(crate) fn message(&self) -> Result<Deployment, StoreError> {
        let stored = Deployment::decode(self.deployment.as_slice()).map_err(decode_error)?;
        Ok(complete(
            stored,
            self.version,
            self.created_at,
            self.version == self.current_version,
        ))
    }
}

/// Adds the version, time and currentness to a stored deployment.
pub(crate) fn complete(
    stored: Deployment,
    version: i64,
    at: Timestamp,
    current: bool,
) -> Deployment {
    Deployment {
        version: version.unsigned_abs(),
        deploy_time: Some(proto_time(at)),
        current,
        ..stored
    }
}

pub(crate) async fn lock_current(tx: &mut Tx, scope: &Scope) -> Result<Current, StoreError> {
    current(tx.one(scoped!("lock_current", scope)).await?)
}

pub(crate) async fn read_current(tx: &mut Tx, scope: &Scope) -> Result<Current, StoreError> {
    let row = tx.optional(scoped!("read_current", scope)).await?;
    row.map_or(
        Ok(Current {
            version: 0,
            digest: None,
        }),
        current,
    )
}

fn current((version, stored): (i64, Option<Vec<u8>>)) -> Result<Current, StoreError> {
    Ok(Current {
        version,
        digest: stored.as_deref().map(digest).transpose()?,
    })
}

/// Stores a manifest unless its digest is already stored.
pub(crate) async fn insert_manifest(
    tx: &mut Tx,
    scope: &Scope,
    digest: &Digest,
    manifest: &Manifest,
) -> Result<(), StoreError> {
    let statement = scoped!("insert_manifest", scope)
        .bind(digest.as_bytes().as_slice())
        .bind(manifest.encode_to_vec());
    tx.execute(statement).await.map(drop)
}

/// Stores a deployment and returns when it was created.
pub(crate) async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    id: &DeploymentId,
    version: i64,
    digest: &Digest,
    deployment: &Deployment,
) -> Result<Timestamp, StoreError> {
    let statement = scoped!("insert_deployment", scope)
        .bind(Uuid::from_bytes(*id.as_bytes()))
        .bind(version)
        .bind(digest.as_bytes().as_slice())
        .bind(deployment.encode_to_vec());
    let (created_at,): (Timestamp,) = tx.one(statement).await?;
    Ok(created_at)
}

/// Makes a deployment the current one, under the lock of [`lock_current`].
pub(crate) async fn set_current(
    tx: &mut Tx,
    scope: &Scope,
    id: &DeploymentId,
    version: i64,
    digest: &Digest,
) -> Result<(), StoreError> {
    let statement = scoped!("set_current", scope)
        .bind(version)
        .bind(Uuid::from_bytes(*id.as_bytes()))
        .bind(digest.as_bytes().as_slice());
    tx.execute(statement).await.map(drop)
}

/// Finds a deployment by id, or the current one without an id.
pub(crate) async fn find(
    tx: &mut Tx,
    scope: &Scope,
    id: Option<&DeploymentId>,
) -> Result<Option<DeploymentRow>, StoreError> {
    let id = id.map(|id| Uuid::from_bytes(*id.as_bytes()));
    let row = tx
        .optional(scoped!("find_deployment", scope).bind(id))
        .await?;
    Ok(row.map(DeploymentRow::new))
}

/// Lists deployments below a version, newest first.
pub(crate) async fn list(
    tx: &mut Tx,
    scope: &Scope,
    below: i64,
    count: i64,
) -> Result<Vec<DeploymentRow>, StoreError> {
    let rows = tx
        .all(scoped!("list_deployments", scope).bind(below).bind(count))
        .await?;
    Ok(rows.into_iter().map(DeploymentRow::new).collect())
}

pub(crate) async fn find_manifest(
    tx: &mut Tx,
    scope: &Scope,
    digest: &Digest,
) -> Result<Manifest, StoreError> {
    let statement = scoped!("find_manifest", scope).bind(digest.as_bytes().as_slice());
    let (bytes,): (Vec<u8>,) = tx.one(statement).await?;
    Manifest::decode(bytes.as_slice()).map_err(decode_error)
}

/// Returns the deployment of each (scope, id) pair, where one exists; without an id the current
/// one.
pub(crate) async fn find_many(
    store: &LoopStore,
    scopes: &[Scope],
    ids: Vec<Option<DeploymentId>>,
) -> Result<Vec<Option<(DeploymentId, Digest)>>, StoreError> {
    let (tenants, workspaces) = columns(scopes);
    let ids: Vec<Option<Uuid>> = ids
        .into_iter()
        .map(|id| id.map(|id| Uuid::from_bytes(*id.as_bytes())))
        .collect();
    let statement = query(include_str!("sql/find_deployments.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(ids);
    let rows: Vec<(i64, Uuid, Vec<u8>)> = store.all(statement).await?;
    let mut found = vec![None; scopes.len()];
    for (position, id, stored) in rows {
        let at = usize::try_from(position - 1).unwrap_or(usize::MAX);
        if let Some(slot) = found.get_mut(at) {
            *slot = Some((DeploymentId::from_bytes(*id.as_bytes()), digest(&stored)?));
        }
    }
    Ok(found)
}

/// Returns the manifests of these digests in any order.
pub(crate) async fn find_manifests(
    store: &LoopStore,
    digests: &[(Scope, Digest)],
) -> Result<Vec<Manifest>, StoreError> {
    let (tenants, workspaces) = columns(digests.iter().map(|(scope, _)| scope));
    let bytes: Vec<Vec<u8>> = digests
        .iter()
        .map(|(_, digest)| digest.as_bytes().to_vec())
        .collect();
    let statement = query(include_str!("sql/find_manifests.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(bytes);
    let rows: Vec<(Vec<u8>,)> = store.all(statement).await?;
    rows.iter()
        .map(|(bytes,)| Manifest::decode(bytes.as_slice()).map_err(decode_error))
        .collect()
}

/// Returns scopes as two columns for `unnest`.
pub(super) fn columns<'a>(
    scopes: impl IntoIterator<Item = &'a Scope>,
) -> (Vec<TenantId>, Vec<WorkspaceId>) {
    scopes
        .into_iter()
        .map(|scope| (scope.tenant.clone(), scope.workspace.clone()))
        .unzip()
}

fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    let bytes = <[u8; 32]>::try_from(bytes).map_err(decode_error)?;
    Ok(Digest::from_bytes(bytes))
}

pub(super) fn decode_error(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Database(sqlx::Error::Decode(Box::new(error)))
}
