//! From a wish to a plan: a pure function of deployment, order and moment.
//!
//! Start reading at [`draft`]. Tasks are drafted per asset and partition, linked through the mappings and narrowed for a
//! retry; [`Drafted::finish`] puts them in order and has them named by `servo_model::plan`. In between the caller looks
//! up what partitions are like, where the wish depends on that.

mod current;
mod draft;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use servo_model::limits::{CONFIGS_PER_TASK_BYTES_MAX, TASKS_PER_RUN_MAX};
use servo_model::partitioning::Moment;
use servo_model::plan::PlanId;
use servo_model::{Operation, TaskKey};
use servo_proto::v1;
use servo_proto::v1::{ErrorReason as Reason, PartitionCondition, ReusedOutput, RunSpec};

use crate::core::choose::{self, Chosen, choose};
use crate::core::deployed::Deployed;
use crate::core::freshness::{Place, Statuses};
use crate::core::refusal::Refusal;
use crate::core::settings::{self, check_config};

use self::draft::Draft;
pub(crate) use self::draft::read_by;

const LABELS_MAX: usize = 32;
const LABEL_BYTES_MAX: usize = 256;

/// One plan to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) workspace: &'a str,
    pub(crate) deployment_id: &'a str,
    pub(crate) spec: &'a RunSpec,
    pub(crate) reused: &'a [ReusedOutput],
    /// Empty for all.
    pub(crate) only: &'a [String],
    /// 0 for as many as a run may have.
    pub(crate) max_tasks: u32,
}

/// A plan and the name it is stored under.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) id: PlanId,
    pub(crate) plan: v1::Plan,
}

/// Tasks that still lack what depends on the state of partitions.
#[derive(Debug)]
pub(crate) struct Drafted {
    drafts: Vec<Draft>,
    /// Which partitions of the selected assets are meant.
    condition: PartitionCondition,
    skip_up_to_date: bool,
}

pub(crate) fn draft(
    deployed: &Deployed,
    order: &Order<'_>,
    moment: &Moment,
) -> Result<Drafted, Refusal> {
    let operation = check_spec(order.spec)?;
    let makers = wanted_makers(deployed, order.spec, operation)?;
    let selection = order.spec.partitions.as_ref();
    let chosen = choose(deployed, &makers, selection, moment)?;
    check_count(&chosen, order.max_tasks)?;
    check_configs(deployed, &makers, &order.spec.config_json)?;
    // A retry names its tasks, whatever their partitions are like by now.
    let condition = match order.only.is_empty() {
        true => choose::condition(selection, choose::FIELD)?,
        false => PartitionCondition::Unspecified,
    };
    let skip_up_to_date = order.spec.skip_up_to_date;
    let depends = skip_up_to_date || condition != PartitionCondition::Unspecified;
    let drafts = Draft::all(deployed, &chosen, operation, moment, depends)?;
    let drafts = draft::only(drafts, order.only)?;
    not_empty(&drafts, "none of its partitions exists")?;
    Ok(Drafted {
        drafts,
        condition,
        skip_up_to_date,
    })
}

impl Drafted {
    /// The partitions of which the plan depends, in order and each once; none for most plans.
    pub(crate) fn places(&self) -> Vec<Place> {
        let all = self
            .drafts
            .iter()
            .flat_map(|draft| draft.made.iter().chain(&draft.read));
        let distinct: BTreeSet<&Place> = all.collect();
        distinct.into_iter().cloned().collect()
    }

    /// `statuses` tells about [`Drafted::places`]; what was never tried is not in it.
    pub(crate) fn finish(
        self,
        deployed: &Deployed,
        order: &Order<'_>,
        statuses: &Statuses,
    ) -> Result<Made, Refusal> {
        let mut drafts = self.drafts;
        if self.condition != PartitionCondition::Unspecified {
            drafts = current::choose(deployed, drafts, self.condition, statuses);
            not_empty(
                &drafts,
                "none of its partitions is in the condition that partitions.only names",
            )?;
        }
        if self.skip_up_to_date {
            current::mark(deployed, &mut drafts, statuses);
        }
        write::plan(deployed, order, drafts)
    }
}

fn not_empty(drafts: &[Draft], why: &str) -> Result<(), Refusal> {
    match drafts.is_empty() {
        false => Ok(()),
        true => Err(Refusal::new(
            Reason::SelectionEmpty,
            format!("the selection means no task: {why}"),
        )),
    }
}

/// What can be judged without a deployment.
fn check_spec(spec: &RunSpec) -> Result<Operation, Refusal> {
    let invalid =
        |field: &str, sentence: String| Refusal::of_field(Reason::InvalidField, field, sentence);
    check_config(&spec.config_json).map_err(|sentence| invalid("spec.config_json", sentence))?;
    if spec.labels.len() > LABELS_MAX {
        let sentence = format!(
            "has {} entries; at most {LABELS_MAX} are allowed",
            spec.labels.len()
        );
        return Err(invalid("spec.labels", sentence));
    }
    if spec
        .labels
        .iter()
        .any(|(key, value)| key.is_empty() || key.len().max(value.len()) > LABEL_BYTES_MAX)
    {
        let sentence =
            format!("a label is empty or longer than {LABEL_BYTES_MAX} bytes; shorten it");
        return Err(invalid("spec.labels", sentence));
    }
    let not_built = |field: &str, what: &str| {
        Err(Refusal::of_field(
            Reason::NotImplemented,
            field,
            format!("{what} is not built yet; leave it out"),
        ))
    };
    if spec.skip_up_to_date && spec.operation == v1::Operation::Check as i32 {
        let sentence = "a check makes nothing that could be up to date; leave it out".to_owned();
        return Err(invalid("spec.skip_up_to_date", sentence));
    }
    match v1::Operation::try_from(spec.operation) {
        Ok(v1::Operation::Unspecified | v1::Operation::Materialize) => Ok(Operation::Materialize),
        Ok(v1::Operation::Check) => Ok(Operation::Check),
        Ok(v1::Operation::Evaluate) => not_built("spec.operation", "polling a sensor"),
        Err(_) => Err(invalid(
            "spec.operation",
            format!("{} is no operation", spec.operation),
        )),
    }
}

/// The assets whose tasks the selection asks for. Sources never have one.
fn wanted_makers(
    deployed: &Deployed,
    spec: &RunSpec,
    operation: Operation,
) -> Result<BTreeSet<u32>, Refusal> {
    const FIELD: &str = "spec.selection";
    if spec.selection.is_empty() {
        let sentence = "is empty; name assets, or `*` for all";
        return Err(Refusal::of_field(Reason::SelectionInvalid, FIELD, sentence));
    }
    let selected = deployed.select(FIELD, &spec.selection)?;
    let asked_for_something = !selected.is_empty();
    let has_work = |maker: &u32| {
        let asset = &deployed.manifest.assets[*maker as usize];
        operation != Operation::Check || !asset.checks.is_empty()
    };
    let runnable = selected
        .into_iter()
        .filter(|asset| !deployed.is_source(*asset));
    let makers: BTreeSet<u32> = runnable
        .map(|asset| deployed.maker(asset))
        .filter(has_work)
        .collect();
    match (makers.is_empty(), asked_for_something) {
        (false, _) => Ok(makers),
        (true, false) => Err(Refusal::of_field(
            Reason::SelectionEmpty,
            FIELD,
            "means no asset of this deployment",
        )),
        (true, true) => {
            let sentence =
                "means only sources, which Servo never runs, or assets without checks to run";
            Err(Refusal::of_field(Reason::SelectionEmpty, FIELD, sentence))
        }
    }
}

fn check_count(chosen: &Chosen, max_tasks: u32) -> Result<(), Refusal> {
    let max = match max_tasks {
        0 => TASKS_PER_RUN_MAX,
        max => TASKS_PER_RUN_MAX.min(max as usize),
    };
    let count: usize = chosen.values().map(Vec::len).sum();
    match count <= max {
        true => Ok(()),
        false => Err(Refusal::of_field(
            Reason::QuotaExceeded,
            "spec.selection",
            format!(
                "means {count} tasks, more than the {max} that max_tasks_per_run allows; select less, split the run, \
                 or raise the limit"
            ),
        )),
    }
}

/// What a task is configured with travels in its envelope: what none can hold is refused before anything runs.
fn check_configs(deployed: &Deployed, makers: &BTreeSet<u32>, of_run: &str) -> Result<(), Refusal> {
    for maker in makers {
        let asset = &deployed.manifest.assets[*maker as usize];
        let own = asset.config_json.len() + settings::handler_config(asset).len();
        let bytes = own + of_run.len();
        if bytes > CONFIGS_PER_TASK_BYTES_MAX {
            let sentence = format!(
                "makes {bytes} bytes with the {own} of `{}`; {CONFIGS_PER_TASK_BYTES_MAX} are allowed together, so pass a \
                 reference to what is large",
                asset.key
            );
            return Err(Refusal::of_field(
                Reason::InvalidField,
                "spec.config_json",
                sentence,
            ));
        }
    }
    Ok(())
}

/// A key that a caller names, in this field.
fn parse_key(field: &str, index: usize, text: &str) -> Result<TaskKey, Refusal> {
    text.parse()
        .map_err(|error: servo_model::task_key::TaskKeyError| {
            Refusal::of_field(
                Reason::InvalidField,
                format!("{field}[{index}]"),
                error.to_string(),
            )
        })
}
