//! Manifests, deployments, and which one is current.

use prost::Message;
use servo_model::{DeploymentId, Digest};
use servo_proto::v1::{Deployment, Manifest};
use servo_store::{LoopStore, StoreError, Timestamp, Tx, query, sqlx};
use uuid::Uuid;

use super::{Scope, scoped};

/// What a workspace has now; version 0 before its first deployment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current {
    pub(crate) version: i64,
    pub(crate) digest: Option<Digest>,
}

/// A row of `planner.deployments`, and the version that is current.
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

    /// The message, with what the columns say filled in.
    pub(crate) fn message(&self) -> Result<Deployment, StoreError> {
        let stored = Deployment::decode(self.deployment.as_slice()).map_err(broken)?;
        Ok(complete(
            stored,
            self.version,
            self.created_at,
            self.version == self.current_version,
        ))
    }
}

/// A stored deployment with its version, time and whether it is current.
pub(crate) fn complete(
    stored: Deployment,
    version: i64,
    at: Timestamp,
    current: bool,
) -> Deployment {
    let deploy_time = Some(time(at));
    Deployment {
        version: version.unsigned_abs(),
        deploy_time,
        current,
        ..stored
    }
}

pub(crate) fn time(at: Timestamp) -> prost_types::Timestamp {
    let us = at.unix_us();
    let nanos = i32::try_from(us.rem_euclid(1_000_000) * 1000).unwrap_or(0);
    prost_types::Timestamp {
        seconds: us.div_euclid(1_000_000),
        nanos,
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

/// Stores a deployment and makes it the current one, under the lock of [`lock_current`].
pub(crate) async fn keep(
    tx: &mut Tx,
    scope: &Scope,
    id: &DeploymentId,
    version: i64,
    manifest: (&Digest, Vec<u8>),
    deployment: &Deployment,
) -> Result<Timestamp, StoreError> {
    let (digest, manifest) = manifest;
    let (id, digest) = (
        Uuid::from_bytes(*id.as_bytes()),
        digest.as_bytes().as_slice(),
    );
    tx.execute(scoped!("keep_manifest", scope).bind(digest).bind(manifest))
        .await?;
    let statement = scoped!("keep_deployment", scope)
        .bind(id)
        .bind(version)
        .bind(digest)
        .bind(deployment.encode_to_vec());
    let (created_at,): (Timestamp,) = tx.one(statement).await?;
    tx.execute(
        scoped!("set_current", scope)
            .bind(version)
            .bind(id)
            .bind(digest),
    )
    .await?;
    Ok(created_at)
}

/// Without an id the current one.
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

/// Those below a version, newest first.
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

pub(crate) async fn manifest(
    tx: &mut Tx,
    scope: &Scope,
    digest: &Digest,
) -> Result<Manifest, StoreError> {
    let statement = scoped!("find_manifest", scope).bind(digest.as_bytes().as_slice());
    let (bytes,): (Vec<u8>,) = tx.one(statement).await?;
    Manifest::decode(bytes.as_slice()).map_err(broken)
}

/// For each place the deployment that is meant, where there is one.
pub(crate) async fn find_ordered(
    store: &LoopStore,
    scopes: &[Scope],
    ids: Vec<Option<DeploymentId>>,
) -> Result<Vec<Option<(DeploymentId, Digest)>>, StoreError> {
    let (tenants, workspaces) = columns(scopes);
    let ids: Vec<Option<Uuid>> = ids
        .into_iter()
        .map(|id| id.map(|id| Uuid::from_bytes(*id.as_bytes())))
        .collect();
    let statement = query(include_str!("sql/find_ordered.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(ids);
    let rows: Vec<(i64, Uuid, Vec<u8>)> = store.all(statement).await?;
    let mut found = vec![None; scopes.len()];
    for (place, id, stored) in rows {
        let at = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let Some(slot) = found.get_mut(at) {
            *slot = Some((DeploymentId::from_bytes(*id.as_bytes()), digest(&stored)?));
        }
    }
    Ok(found)
}

/// The manifests of these digests, in any order.
pub(crate) async fn manifests(
    store: &LoopStore,
    wanted: &[(Scope, Digest)],
) -> Result<Vec<Manifest>, StoreError> {
    let (tenants, workspaces) = columns(wanted.iter().map(|(scope, _)| scope));
    let digests: Vec<Vec<u8>> = wanted
        .iter()
        .map(|(_, digest)| digest.as_bytes().to_vec())
        .collect();
    let statement = query(include_str!("sql/find_manifests.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(digests);
    let rows: Vec<(Vec<u8>,)> = store.all(statement).await?;
    rows.iter()
        .map(|(bytes,)| Manifest::decode(bytes.as_slice()).map_err(broken))
        .collect()
}

/// Scopes as two columns to unnest.
pub(super) fn columns<'a>(
    scopes: impl IntoIterator<Item = &'a Scope>,
) -> (Vec<String>, Vec<String>) {
    scopes
        .into_iter()
        .map(|scope| (scope.tenant.clone(), scope.workspace.clone()))
        .unzip()
}

fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    let bytes = <[u8; 32]>::try_from(bytes).map_err(broken)?;
    Ok(Digest::from_bytes(bytes))
}

pub(super) fn broken(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Database(sqlx::Error::Decode(Box::new(error)))
}
