//! ListUsage: returns the usage of attempts by time and group.

use servo_mesh::Error;
use servo_proto::proto_time;
use servo_proto::v1::{ListUsageRequest, ListUsageResponse, Usage, UsageLine};

use super::Quota;
use super::support::parse::parse_tenant;
use super::support::report::{ReportRequest, group, page};
use crate::core::report::Groups;
use crate::store::report::Line;

pub(super) async fn list_usage(
    quota: &Quota,
    request: ListUsageRequest,
) -> Result<ListUsageResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let report = ReportRequest {
        method: "usage",
        tenant: &tenant,
        page_size: request.page_size,
        page_token: &request.page_token,
        filter: &request.filter,
        start_time: request.start_time,
        end_time: request.end_time,
        grain: request.grain,
        group_by: &request.group_by,
        may_group_by: &["workspace", "asset", "pool"],
        currency: "",
    };
    let page = page(quota, report).await?;
    let lines = page
        .lines
        .iter()
        .map(|line| usage_line(page.groups, line))
        .collect();
    Ok(ListUsageResponse {
        lines,
        next_page_token: page.next_page_token,
    })
}

fn usage_line(groups: Groups, line: &Line) -> UsageLine {
    let [
        attempts,
        slot_ms,
        cpu_ms,
        memory_mb_ms,
        gpu_ms,
        peak,
        read,
        written,
        egress,
        ..,
    ] = line.sums;
    UsageLine {
        start_time: Some(proto_time(line.key.begins)),
        end_time: Some(proto_time(line.ends)),
        group: group(groups, &line.key),
        attempts,
        slot_ms,
        usage: Some(Usage {
            cpu_ms,
            memory_mb_ms,
            gpu_ms,
            memory_peak_bytes: peak,
            read_bytes: read,
            written_bytes: written,
            egress_bytes: egress,
            ..Usage::default()
        }),
    }
}
