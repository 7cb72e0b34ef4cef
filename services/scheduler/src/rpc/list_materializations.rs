//! ListMaterializations: versions of data, newest first.

use prost::Message as _;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, Timestamp, query};
use uuid::Uuid;

use super::materialization_filter::{Narrowed, Wanted};
use super::task_names::TaskNames;
use super::{Scheduler, answer, wait};
use crate::wire;

/// How many rows are looked at for a page whose filter most of them do not fit.
const LOOKED_AT_MAX: usize = 2_000;
/// Later than every version: the year 9999.
const NEWEST: i64 = 253_370_764_800_000_000;

/// Attempt, asset, ordinal, item, state, version, recorded, promoted, output; run, deployment and plan; who decided
/// about it, and by which event.
pub(super) type Row = (
    Uuid,
    String,
    i32,
    i32,
    i16,
    i64,
    Timestamp,
    Option<Timestamp>,
    Vec<u8>,
    Uuid,
    Option<String>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<Uuid>,
);

/// Where a page ends; an asset's key tells apart what one attempt made.
type Place = (i64, Uuid, String);

pub(super) async fn list_materializations(
    scheduler: &Scheduler,
    request: pb::ListMaterializationsRequest,
) -> Result<pb::ListMaterializationsResponse, Error> {
    let wanted = Wanted::parse(&request.filter)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "materializations",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let before = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (NEWEST, Uuid::max(), String::new()),
        Some(cursor) => place(&cursor)?,
    };
    let looked_at = if wanted.is_all() { size } else { LOOKED_AT_MAX };
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let rows = rows(&mut tx, &request, &wanted, &before, looked_at + 1).await?;
    tx.commit().await.map_err(answer::store)?;
    let mut page = Page::default();
    for row in rows.iter().take(looked_at) {
        if page.shown.len() == size {
            break;
        }
        page.last = Some(place_of(row));
        let version = show(
            scheduler,
            (&request.tenant, &request.workspace),
            row,
            &mut page.names,
        )
        .await?;
        page.shown
            .extend(Some(version).filter(|version| wanted.fits(version)));
    }
    let next = page
        .last
        .filter(|last| Some(last) != rows.last().map(place_of).as_ref());
    let next = next.map(|(at, attempt, asset)| format!("{at}.{attempt}.{asset}"));
    Ok(pb::ListMaterializationsResponse {
        materializations: page.shown,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

#[derive(Default)]
struct Page {
    shown: Vec<pb::Materialization>,
    /// The last that was looked at.
    last: Option<Place>,
    names: TaskNames,
}

/// By the narrowest index that the filter allows.
async fn rows(
    tx: &mut TenantTx,
    request: &pb::ListMaterializationsRequest,
    wanted: &Wanted,
    (at, attempt, asset): &Place,
    count: usize,
) -> Result<Vec<Row>, Error> {
    let narrowed = wanted.narrowed();
    let statement = match &narrowed {
        Narrowed::Run(_) => include_str!("../store/list_materializations_of_run.sql"),
        Narrowed::Asset(_) => include_str!("../store/list_materializations_of_asset.sql"),
        Narrowed::Quarantined => include_str!("../store/list_quarantined.sql"),
        Narrowed::Not => include_str!("../store/list_materializations.sql"),
    };
    let select = query(statement)
        .bind(&request.tenant)
        .bind(&request.workspace)
        .bind(Timestamp::from_unix_us(*at))
        .bind(*attempt)
        .bind(asset)
        .bind(count as i64);
    let select = match narrowed {
        Narrowed::Run(run) => select.bind(Uuid::from_bytes(*run.as_bytes())),
        Narrowed::Asset(asset) => select.bind(asset.to_owned()),
        Narrowed::Quarantined | Narrowed::Not => select,
    };
    tx.all(select).await.map_err(answer::store)
}

pub(super) async fn show(
    scheduler: &Scheduler,
    scope: (&str, &str),
    row: &Row,
    names: &mut TaskNames,
) -> Result<pb::Materialization, Error> {
    let (
        attempt,
        _,
        ordinal,
        item,
        state,
        version,
        recorded_at,
        promoted_at,
        output,
        run,
        deployment,
        plan,
        ..,
    ) = row;
    let unreadable = |_| Error::new(Reason::Internal, "a stored version cannot be read");
    let output = pb::Output::decode(output.as_slice()).map_err(unreadable)?;
    let resolved_by = row
        .12
        .as_deref()
        .map(pb::Actor::decode)
        .transpose()
        .map_err(unreadable)?;
    let task = names
        .find(scheduler, scope, plan.as_deref(), (*ordinal, *item))
        .await?;
    Ok(pb::Materialization {
        materialization_id: servo_model::AttemptId::from_bytes(*attempt.as_bytes()).to_string(),
        gating: output.gating,
        output: Some(output),
        state: (*state).into(),
        run_id: servo_model::RunId::from_bytes(*run.as_bytes()).to_string(),
        task_id: task.map_or_else(String::new, |task| task.id().to_string()),
        deployment_id: deployment.clone().unwrap_or_default(),
        record_time: Some(wire::timestamp(recorded_at.unix_us())),
        promote_time: promoted_at.map(|at| wire::timestamp(at.unix_us())),
        resolved_by,
        version: u64::try_from(*version).unwrap_or(0) + 1,
    })
}

fn place_of(row: &Row) -> Place {
    (row.6.unix_us(), row.0, row.1.clone())
}

fn place(text: &str) -> Result<Place, Error> {
    let mut parts = text.splitn(3, '.');
    let mut read = || {
        Some((
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
            parts.next()?.to_owned(),
        ))
    };
    read().ok_or_else(|| {
        let message = "page_token is not one that ListMaterializations gave; begin anew";
        Error::new(Reason::InvalidPageToken, message)
    })
}
