//! VerifyProjection: compares the rows of a sample of runs with those that their events fold to.

use servo_mesh::{Error, Reason};
use servo_model::{ShardId, Stream};
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::errors;
use crate::reads::projection::Projection;
use crate::reads::verify_projection as reads;
use crate::store::runs;
use crate::store::shards::all_shards;

const SAMPLE_DEFAULT: u32 = 100;
const SAMPLE_MAX: u32 = 100_000;

pub(super) async fn verify_projection(
    scheduler: &Scheduler,
    request: pb::VerifyProjectionRequest,
) -> Result<pb::VerifyProjectionResponse, Error> {
    let projection = Projection::ALL
        .into_iter()
        .find(|projection| projection.name() == request.projection)
        .ok_or_else(|| unknown(&request.projection))?;
    let sample = match request.sample_size {
        0 => SAMPLE_DEFAULT,
        n if n <= SAMPLE_MAX => n,
        n => {
            return Err(Error::bad_field(
                "sample_size",
                format!("is {n}; at most {SAMPLE_MAX} are allowed"),
            ));
        }
    };
    let shards = parse_shards(&request.shards)?;
    let numbers = runs::sample(scheduler.reads.store.loops(), &shards, sample)
        .await
        .map_err(errors::store)?;
    let mut found = pb::VerifyProjectionResponse {
        equal: true,
        ..Default::default()
    };
    for number in numbers {
        if let Some(comparison) = reads::compare_run(&scheduler.reads, projection, number).await? {
            reads::add_differences(projection, comparison, &mut found);
        }
    }
    Ok(found)
}

fn unknown(name: &str) -> Error {
    let names = Projection::ALL.map(Projection::name).join(", ");
    Error::new(
        Reason::ProjectionNotFound,
        format!("there is no projection `{name}`; use one of {names}"),
    )
    .with("projection", name)
}

fn parse_shards(requested: &[u32]) -> Result<Vec<ShardId>, Error> {
    let shard = |number: &u32| {
        Stream::Execution.shard(*number).ok_or_else(|| {
            let last = Stream::Execution.shard_count() - 1;
            Error::bad_field(
                "shards",
                format!("there is no shard {number}; use 0 to {last}"),
            )
        })
    };
    if requested.is_empty() {
        return Ok(all_shards());
    }
    let mut shards: Vec<ShardId> = requested.iter().map(shard).collect::<Result<_, _>>()?;
    // A shard that is named twice is compared once.
    shards.sort_unstable();
    shards.dedup();
    Ok(shards)
}
