//! Puts drafts in order, names the whole by its content, and writes it as a message.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use servo_model::json::Json;
use servo_model::plan::{Plan, PlanError, PlanHeader, PlanTask};
use servo_model::{AssetKey, AttemptId, Digest, Operation, TaskKey};
use servo_proto::v1;
use servo_proto::v1::{
    ErrorReason as Reason, PlannedAsset, PlannedInput, PlannedTask, ReusedOutput,
};

use super::draft::Draft;
use super::{Made, Order, parse_key};
use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;
use crate::core::settings;

pub(super) fn plan(
    deployed: &Deployed,
    order: &Order<'_>,
    drafts: Vec<Draft>,
) -> Result<Made, Refusal> {
    let assets: BTreeSet<u32> = drafts.iter().map(|draft| draft.asset).collect();
    let reused = reused(order.reused)?;
    let header = header(deployed, order, &assets, &reused)?;
    let plan = Plan::new(header, tasks(deployed, order, &drafts)).map_err(refused)?;
    let message = v1::Plan {
        plan_id: plan.id().to_string(),
        fingerprint: plan.fingerprint().to_string(),
        tenant: order.tenant.to_owned(),
        workspace: order.workspace.to_owned(),
        deployment_id: order.deployment_id.to_owned(),
        manifest_digest: deployed.digest.to_string(),
        assets: assets
            .iter()
            .filter_map(|asset| planned_asset(deployed, order, *asset))
            .collect(),
        tasks: written_tasks(&plan, drafts, &assets),
        reused,
        config_json: order.spec.config_json.clone(),
        artifact: deployed.manifest.artifact.clone(),
    };
    Ok(Made {
        id: plan.id(),
        plan: message,
    })
}

fn header(
    deployed: &Deployed,
    order: &Order<'_>,
    assets: &BTreeSet<u32>,
    reused: &[ReusedOutput],
) -> Result<PlanHeader, Refusal> {
    let invalid = |field: &str, error: servo_model::ids::IdError| {
        Refusal::of_field(Reason::InvalidField, field, error.to_string())
    };
    let digests = assets.iter().filter_map(|asset| {
        let (_, digest) = deployed.planned[*asset as usize].as_ref()?;
        Some((
            deployed.name(*asset).to_owned(),
            Json::Text(digest.to_string()),
        ))
    });
    let reused = reused.iter().map(reused_json);
    let settings = BTreeMap::from([
        ("assets".to_owned(), Json::Object(digests.collect())),
        (
            "config_sha256".to_owned(),
            Json::Text(Digest::of(&order.spec.config_json).to_string()),
        ),
        (
            "deployment_id".to_owned(),
            Json::Text(order.deployment_id.to_owned()),
        ),
        ("reused".to_owned(), Json::Array(reused.collect())),
    ]);
    Ok(PlanHeader {
        tenant: order
            .tenant
            .parse()
            .map_err(|error| invalid("tenant", error))?,
        workspace: order
            .workspace
            .parse()
            .map_err(|error| invalid("workspace", error))?,
        deployment: deployed.digest,
        settings,
    })
}

/// A task that made one asset is written as it was when there was nothing else to tell, so that its plan keeps its name.
fn reused_json(output: &ReusedOutput) -> Json {
    let also_made = output.also_made.iter().cloned().map(Json::Text).collect();
    let also_made = (!output.also_made.is_empty()).then_some(Json::Array(also_made));
    let named = [&output.task_key, &output.materialization_id].map(|text| Json::Text(text.clone()));
    Json::Array(named.into_iter().chain(also_made).collect())
}

fn tasks(deployed: &Deployed, order: &Order<'_>, drafts: &[Draft]) -> Vec<PlanTask<TaskKey>> {
    let key = |place: &usize| drafts[*place].key.clone();
    let task = |draft: &Draft| {
        let (planned, _) = deployed.planned[draft.asset as usize].as_ref()?;
        Some(PlanTask {
            key: draft.key.clone(),
            upstream: draft.upstream.iter().map(key).collect(),
            map_over: draft.mapped_over.as_ref().map(key),
            priority: planned.priority.saturating_add(order.spec.priority),
            resources: settings::resources(planned),
            retry: settings::retry_policy(planned),
            settings: task_settings(draft),
        })
    };
    drafts.iter().filter_map(task).collect()
}

fn task_settings(draft: &Draft) -> BTreeMap<String, Json> {
    let inputs = Json::Array(draft.inputs.iter().map(input_json).collect());
    let up_to_date = draft
        .up_to_date
        .then(|| ("up_to_date".to_owned(), Json::Bool(true)));
    [("inputs".to_owned(), inputs)]
        .into_iter()
        .chain(up_to_date)
        .collect()
}

fn input_json(input: &PlannedInput) -> Json {
    let text = |text: &String| Json::Text(text.clone());
    Json::Object(BTreeMap::from([
        ("asset".to_owned(), text(&input.asset_key)),
        ("optional".to_owned(), Json::Bool(input.optional)),
        ("parameter".to_owned(), text(&input.parameter)),
        (
            "partitions".to_owned(),
            Json::Array(input.partition_keys.iter().map(text).collect()),
        ),
    ]))
}

fn planned_asset(deployed: &Deployed, order: &Order<'_>, asset: u32) -> Option<PlannedAsset> {
    let (planned, _) = deployed.planned[asset as usize].as_ref()?;
    let priority = planned.priority.saturating_add(order.spec.priority);
    Some(PlannedAsset {
        priority,
        ..planned.clone()
    })
}

fn written_tasks(plan: &Plan, drafts: Vec<Draft>, assets: &BTreeSet<u32>) -> Vec<PlannedTask> {
    let numbers: HashMap<u32, u32> = assets.iter().copied().zip(0..).collect();
    let mut drafts: HashMap<TaskKey, Draft> = drafts
        .into_iter()
        .map(|draft| (draft.key.clone(), draft))
        .collect();
    let write = |task: &PlanTask<u32>| {
        let draft = drafts.remove(&task.key)?;
        Some(PlannedTask {
            task_key: task.key.as_str().to_owned(),
            asset: numbers[&draft.asset],
            partition_key: task
                .key
                .partition()
                .map(ToString::to_string)
                .unwrap_or_default(),
            operation: operation(task.key.operation()).into(),
            upstream: task.upstream.clone(),
            inputs: draft.inputs,
            mapped_over: task.map_over,
            sensor: None,
            up_to_date: draft.up_to_date,
        })
    };
    plan.tasks().iter().filter_map(write).collect()
}

fn operation(operation: Operation) -> v1::Operation {
    match operation {
        Operation::Materialize => v1::Operation::Materialize,
        Operation::Check => v1::Operation::Check,
        Operation::Evaluate => v1::Operation::Evaluate,
    }
}

/// Sorted by task, each once.
fn reused(given: &[ReusedOutput]) -> Result<Vec<ReusedOutput>, Refusal> {
    const FIELD: &str = "reused";
    let mut outputs = BTreeMap::new();
    for (index, output) in given.iter().enumerate() {
        let key = parse_key(FIELD, index, &output.task_key)?;
        if let Err(error) = output.materialization_id.parse::<AttemptId>() {
            let field = format!("{FIELD}[{index}].materialization_id");
            return Err(Refusal::of_field(
                Reason::InvalidField,
                field,
                error.to_string(),
            ));
        }
        for (place, also) in output.also_made.iter().enumerate() {
            if let Err(error) = AssetKey::parse_canonical(also) {
                let field = format!("{FIELD}[{index}].also_made[{place}]");
                return Err(Refusal::of_field(
                    Reason::InvalidField,
                    field,
                    error.to_string(),
                ));
            }
        }
        if outputs.insert(key.clone(), output.clone()).is_some() {
            let field = format!("{FIELD}[{index}].task_key");
            return Err(Refusal::of_field(
                Reason::InvalidField,
                field,
                format!("`{key}` stands twice; keep one"),
            ));
        }
    }
    Ok(outputs.into_values().collect())
}

fn refused(error: PlanError) -> Refusal {
    let reason = match &error {
        PlanError::TooManyTasks(_) | PlanError::TooManyEdges(_) => Reason::QuotaExceeded,
        PlanError::MapOver { .. } | PlanError::Graph(_) | PlanError::Settings(_) => {
            Reason::Internal
        }
    };
    Refusal::new(reason, error.to_string())
}
