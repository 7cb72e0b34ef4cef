//! Checks requests, reads pages and builds groups for ListUsage and GetCosts.

use std::collections::BTreeMap;

use servo_mesh::filter::{Field, Filter};
use servo_mesh::paging::page_size;
use servo_mesh::{Error, now};
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_model::{TenantId, Timestamp};
use servo_proto::from_proto_time;
use servo_proto::v1::ReportGrain;

use super::errors::{field_error, store_error};
use crate::core::report::{self, Groups, groups};
use crate::rpc::Quota;
use crate::store::report::{Line, LineKey, ReportQuery, lines};

/// The dimensions by which usage is recorded.
static FIELDS: [Field<()>; 3] = [
    Field::exact("workspace"),
    Field::exact("asset"),
    Field::exact("pool"),
];

/// Separates the parts of a line's key in a page token; names do not contain it.
const SEPARATOR: char = '\u{1f}';

/// A request of either method.
pub(crate) struct ReportRequest<'a> {
    pub(crate) method: &'static str,
    pub(crate) tenant: &'a TenantId,
    pub(crate) page_size: i32,
    pub(crate) page_token: &'a str,
    pub(crate) filter: &'a str,
    pub(crate) start_time: Option<prost_types::Timestamp>,
    pub(crate) end_time: Option<prost_types::Timestamp>,
    pub(crate) grain: i32,
    pub(crate) group_by: &'a [String],
    pub(crate) may_group_by: &'a [&'a str],
    pub(crate) currency: &'a str,
}

pub(crate) struct ReportPage {
    pub(crate) lines: Vec<Line>,
    pub(crate) groups: Groups,
    pub(crate) next_page_token: String,
}

pub(crate) async fn page(quota: &Quota, report: ReportRequest<'_>) -> Result<ReportPage, Error> {
    let size = page_size(report.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let groups = groups(report.group_by, report.may_group_by).map_err(field_error)?;
    let grain = ReportGrain::try_from(report.grain).map_err(|_| {
        Error::bad_field(
            "grain",
            format!("is {}, which is not a known value", report.grain),
        )
    })?;
    let start = time("start_time", report.start_time)?.ok_or_else(|| {
        Error::bad_field("start_time", "is missing; write the start of the report")
    })?;
    let list_key = list_key(&report);
    let list: Vec<&str> = list_key.iter().map(String::as_str).collect();
    let cursor = quota.pages.read(&list, report.page_token)?;
    let (end, after) = match cursor.as_deref().and_then(parse_cursor) {
        // Later pages keep the end time of the first page.
        Some((end, after)) => (end, Some(after)),
        None => (time("end_time", report.end_time)?.unwrap_or_else(now), None),
    };
    let query = ReportQuery {
        tenant: report.tenant,
        start,
        end,
        grain: i16::try_from(i32::from(grain)).unwrap_or(0),
        groups,
        filter: parse_filter(report.filter)?,
        currency: report.currency,
        after,
        limit: size + 1,
    };
    let mut lines = lines(&mut *quota.begin(report.tenant).await?, query)
        .await
        .map_err(store_error)?;
    let more = lines.len() > size;
    lines.truncate(size);
    let last = lines.last().filter(|_| more);
    let next_page_token = last.map(|line| quota.pages.write(&list, &cursor_of(end, &line.key)));
    Ok(ReportPage {
        lines,
        groups,
        next_page_token: next_page_token.unwrap_or_default(),
    })
}

/// Returns the values of the requested dimensions of a line.
pub(crate) fn group(groups: Groups, key: &LineKey) -> BTreeMap<String, String> {
    let dimensions = [
        (groups.workspace, "workspace", &key.workspace),
        (groups.asset, "asset", &key.asset),
        (groups.pool, "pool", &key.pool),
    ];
    let requested = dimensions.into_iter().filter(|(requested, ..)| *requested);
    requested
        .map(|(_, name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// Returns everything that determines the list, to bind page tokens to it.
fn list_key(report: &ReportRequest<'_>) -> Vec<String> {
    let time = |time: Option<prost_types::Timestamp>| {
        time.map(|time| format!("{time:?}")).unwrap_or_default()
    };
    let mut list_key = vec![
        report.method.to_owned(),
        report.tenant.to_string(),
        report.filter.to_owned(),
        time(report.start_time),
        time(report.end_time),
        report.grain.to_string(),
    ];
    list_key.extend_from_slice(report.group_by);
    list_key
}

fn cursor_of(end: Timestamp, key: &LineKey) -> String {
    let parts = [
        end.unix_us().to_string(),
        key.begins.unix_us().to_string(),
        key.workspace.clone(),
        key.asset.clone(),
        key.pool.clone(),
    ];
    parts.join(&SEPARATOR.to_string())
}

fn parse_cursor(cursor: &str) -> Option<(Timestamp, LineKey)> {
    let parts: Vec<&str> = cursor.split(SEPARATOR).collect();
    let [end, begins, workspace, asset, pool] = parts.as_slice() else {
        return None;
    };
    let time = |us: &str| us.parse().ok().map(Timestamp::from_unix_us);
    let text = |text: &str| text.to_owned();
    let key = LineKey {
        begins: time(begins)?,
        workspace: text(workspace),
        asset: text(asset),
        pool: text(pool),
    };
    Some((time(end)?, key))
}

/// Only times that a calendar has are valid, because Postgres cannot store all others.
fn time(field: &str, time: Option<prost_types::Timestamp>) -> Result<Option<Timestamp>, Error> {
    let has_date = |time: &Timestamp| Timestamp::from(time.to_jiff()) == *time;
    let parse = |time: prost_types::Timestamp| {
        from_proto_time(&time).filter(has_date).ok_or_else(|| {
            Error::bad_field(
                field,
                format!("is {} s, which is not a valid time", time.seconds),
            )
        })
    };
    time.map(parse).transpose()
}

fn parse_filter(text: &str) -> Result<report::Filter, Error> {
    let filter = Filter::parse(text, &FIELDS)?;
    let exact = |field| filter.exact(field).map(str::to_owned);
    Ok(report::Filter {
        workspace: exact("workspace"),
        asset: exact("asset"),
        pool: exact("pool"),
    })
}
