//! An asset's partitions with all that they are judged by, read from the scheduler's rows.

use std::sync::Arc;

use servo_mesh::Error;
use servo_model::partitioning::Moment;

use super::context::{Planner, stored, working};
use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;
use crate::core::survey::{Order, Reads, Survey};
use crate::store::{Scope, statuses};

pub(super) async fn survey(
    planner: &Planner,
    scope: &Scope,
    graph: &Arc<Deployed>,
    moment: &Arc<Moment>,
    asset: u32,
) -> Result<Survey, Error> {
    let (deployed, at) = (graph.clone(), moment.clone());
    let (order, mut reads) = working(move || begin(&deployed, asset, &at)).await??;
    // A transaction of its own: what is computed between two assets may take longer than one may lie idle.
    let mut tx = planner.begin(scope).await?;
    for reads in &mut reads {
        let upstream = graph.name(reads.upstream);
        let note = |key: &str, known: crate::core::survey::Known| {
            known
                .made
                .into_iter()
                .for_each(|made| reads.note(key, made.readable_at));
        };
        statuses::of_asset(&mut tx, scope, upstream, "", note)
            .await
            .map_err(stored)?;
    }
    let mut known = Vec::new();
    let keep = |key: &str, status| known.extend(order.place(key).map(|place| (place, status)));
    statuses::of_asset(
        &mut tx,
        scope,
        graph.name(asset),
        graph.code_version(asset),
        keep,
    )
    .await
    .map_err(stored)?;
    known.sort_unstable_by_key(|(place, _)| *place);
    Ok(Survey {
        order,
        known,
        reads,
    })
}

fn begin(deployed: &Deployed, asset: u32, moment: &Moment) -> Result<(Order, Vec<Reads>), Refusal> {
    let maker = deployed.maker(asset);
    let links = deployed.task_links(maker);
    let reads: Result<Vec<Reads>, Refusal> = links
        .map(|link| Reads::of(deployed, maker, link, moment))
        .collect();
    Ok((Order::of(deployed, asset, moment)?, reads?))
}
