//! GetCosts: returns the cost of usage by time and group, in the currency of the effective price
//! list.

use servo_mesh::Error;
use servo_model::TenantScope;
use servo_proto::proto_time;
use servo_proto::v1::{CostLine, GetCostsRequest, GetCostsResponse};

use super::Quota;
use super::get_prices::effective_prices;
use super::support::parse::parse_tenant;
use super::support::report::{ReportRequest, group, page};
use crate::core::report::Groups;
use crate::store::report::Line;

const PICO_PER_MICRO: u64 = 1_000_000;

pub(super) async fn get_costs(
    quota: &Quota,
    request: GetCostsRequest,
) -> Result<GetCostsResponse, Error> {
    let tenant = parse_tenant(&request.tenant)?;
    let (prices, _) = effective_prices(quota, &TenantScope::from(&tenant)).await?;
    let report = ReportRequest {
        method: "costs",
        tenant: &tenant,
        page_size: request.page_size,
        page_token: &request.page_token,
        filter: &request.filter,
        start_time: request.start_time,
        end_time: request.end_time,
        grain: request.grain,
        group_by: &request.group_by,
        may_group_by: &["workspace", "asset"],
        currency: &prices.currency,
    };
    let page = page(quota, report).await?;
    let lines = page
        .lines
        .iter()
        .map(|line| cost_line(page.groups, line))
        .collect();
    Ok(GetCostsResponse {
        lines,
        next_page_token: page.next_page_token,
        currency: prices.currency,
    })
}

fn cost_line(groups: Groups, line: &Line) -> CostLine {
    let [.., compute, storage, network, external] = line.sums.map(|sum| sum / PICO_PER_MICRO);
    CostLine {
        start_time: Some(proto_time(line.key.begins)),
        end_time: Some(proto_time(line.ends)),
        group: group(groups, &line.key),
        compute_micros: compute,
        storage_micros: storage,
        network_micros: network,
        external_micros: external,
        total_micros: compute + storage + network + external,
    }
}
