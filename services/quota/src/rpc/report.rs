//! What ListUsage and GetCosts share: checking what is asked, pages, and groups.

use std::collections::BTreeMap;

use jiff::Timestamp;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_proto::v1::ReportGrain;
use servo_store::Timestamp as Stored;

use super::context::{Quota, bad, stored};
use crate::core::report::{Groups, filter, groups};
use crate::store::report::{Ask, Line, Place, lines};

/// Between the parts of a line's place in a page token; no name holds it.
const SEPARATOR: char = '\u{1f}';

/// A request of either method.
pub(super) struct Report<'a> {
    pub(super) method: &'static str,
    pub(super) tenant: &'a str,
    pub(super) page_size: i32,
    pub(super) page_token: &'a str,
    pub(super) filter: &'a str,
    pub(super) start_time: Option<prost_types::Timestamp>,
    pub(super) end_time: Option<prost_types::Timestamp>,
    pub(super) grain: i32,
    pub(super) group_by: &'a [String],
    pub(super) may_group_by: &'a [&'a str],
    pub(super) currency: &'a str,
}

pub(super) struct Page {
    pub(super) lines: Vec<Line>,
    pub(super) groups: Groups,
    pub(super) next_page_token: String,
}

pub(super) async fn page(quota: &Quota, report: Report<'_>) -> Result<Page, Error> {
    let size = page_size(report.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let groups = groups(report.group_by, report.may_group_by).map_err(bad)?;
    let grain = ReportGrain::try_from(report.grain).map_err(|_| {
        Error::bad_field(
            "grain",
            format!("is {}, which nothing stands for", report.grain),
        )
    })?;
    let start = time("start_time", report.start_time)?
        .ok_or_else(|| Error::bad_field("start_time", "is missing; say from when to count"))?;
    let shape = shape(&report);
    let list: Vec<&str> = shape.iter().map(String::as_str).collect();
    let cursor = quota.pages.read(&list, report.page_token)?;
    let (end, after) = match cursor.as_deref().and_then(place) {
        // Now stays what it was on the first page.
        Some((end, after)) => (end, Some(after)),
        None => (time("end_time", report.end_time)?.unwrap_or_else(now), None),
    };
    let ask = Ask {
        tenant: report.tenant,
        start,
        end,
        grain: i16::try_from(i32::from(grain)).unwrap_or(0),
        groups,
        filter: filter(report.filter).map_err(|sentence| bad_filter(&sentence))?,
        currency: report.currency,
        after,
        limit: size + 1,
    };
    let mut lines = lines(&mut *quota.begin(report.tenant).await?, ask)
        .await
        .map_err(stored)?;
    let more = lines.len() > size;
    lines.truncate(size);
    let last = lines.last().filter(|_| more);
    let next_page_token = last.map(|line| quota.pages.write(&list, &cursor_of(end, &line.place)));
    Ok(Page {
        lines,
        groups,
        next_page_token: next_page_token.unwrap_or_default(),
    })
}

/// What the line is about, by the dimensions asked for.
pub(super) fn group(groups: Groups, place: &Place) -> BTreeMap<String, String> {
    let dimensions = [
        (groups.workspace, "workspace", &place.workspace),
        (groups.asset, "asset", &place.asset),
        (groups.pool, "pool", &place.pool),
    ];
    let asked = dimensions.into_iter().filter(|(asked, ..)| *asked);
    asked
        .map(|(_, name, value)| (name.to_owned(), value.clone()))
        .collect()
}

pub(super) fn wire_time(time: Stored) -> prost_types::Timestamp {
    let us = time.unix_us();
    let nanos = i32::try_from(us.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    prost_types::Timestamp {
        seconds: us.div_euclid(1_000_000),
        nanos,
    }
}

/// Everything that shapes the list.
fn shape(report: &Report<'_>) -> Vec<String> {
    let time = |time: Option<prost_types::Timestamp>| {
        time.map(|time| format!("{time:?}")).unwrap_or_default()
    };
    let mut shape = vec![
        report.method.to_owned(),
        report.tenant.to_owned(),
        report.filter.to_owned(),
        time(report.start_time),
        time(report.end_time),
        report.grain.to_string(),
    ];
    shape.extend_from_slice(report.group_by);
    shape
}

fn cursor_of(end: Stored, place: &Place) -> String {
    let parts = [
        end.unix_us().to_string(),
        place.begins.unix_us().to_string(),
        place.workspace.clone(),
        place.asset.clone(),
        place.pool.clone(),
    ];
    parts.join(&SEPARATOR.to_string())
}

fn place(cursor: &str) -> Option<(Stored, Place)> {
    let parts: Vec<&str> = cursor.split(SEPARATOR).collect();
    let [end, begins, workspace, asset, pool] = parts.as_slice() else {
        return None;
    };
    let time = |us: &str| us.parse().ok().map(Stored::from_unix_us);
    let text = |text: &str| text.to_owned();
    let place = Place {
        begins: time(begins)?,
        workspace: text(workspace),
        asset: text(asset),
        pool: text(pool),
    };
    Some((time(end)?, place))
}

fn now() -> Stored {
    crate::wire::stored(Timestamp::now())
}

fn time(field: &str, time: Option<prost_types::Timestamp>) -> Result<Option<Stored>, Error> {
    let read = |time: prost_types::Timestamp| {
        Timestamp::new(time.seconds, time.nanos)
            .map(crate::wire::stored)
            .map_err(|_| {
                Error::bad_field(field, format!("is {} s, which is no time", time.seconds))
            })
    };
    time.map(read).transpose()
}

fn bad_filter(sentence: &str) -> Error {
    Error::new(Reason::InvalidFilter, format!("filter: {sentence}"))
        .and_bad_field("filter", sentence)
}
