//! Checks each asset on its own.

use std::collections::{HashMap, HashSet};

use servo_model::AssetKey;
use servo_proto::v1::code_ref::Target;
use servo_proto::v1::{
    AssetDefinition, Backoff, CheckDefinition, CheckPhase, CodeRef, ErrorCategory, Manifest,
    RetryPolicy, Severity,
};

use super::{Faults, Names, values};

const MAX_ATTEMPTS_MAX: u32 = 1_000;
const LIST_ITEMS_MAX: usize = 100;
const SECRET_PROVIDERS: [&str; 2] = ["env", "gcp-secret-manager"];

/// Checks each asset and returns its index by key.
pub(super) fn check<'a>(manifest: &'a Manifest, faults: &mut Faults) -> Names<'a> {
    let mut names: Names<'a> = HashMap::with_capacity(manifest.assets.len());
    for (index, asset) in manifest.assets.iter().enumerate() {
        let at = format!("assets[{index}]");
        if let Err(error) = AssetKey::parse_canonical(&asset.key) {
            faults.add(format!("{at}.key"), error.to_string());
        } else if let Some(first) = names.get(asset.key.as_str()) {
            faults.add(
                format!("{at}.key"),
                format!(
                    "`{}` is already declared at assets[{first}]; keep one",
                    asset.key
                ),
            );
        } else {
            names.insert(&asset.key, index);
        }
        check_asset(faults, &at, asset, manifest);
    }
    names
}

fn check_asset(faults: &mut Faults, at: &str, asset: &AssetDefinition, manifest: &Manifest) {
    values::short(
        faults,
        format!("{at}.description"),
        &asset.description,
        values::PROSE_BYTES_MAX,
    );
    values::short(
        faults,
        format!("{at}.pool"),
        &asset.pool,
        values::NAME_BYTES_MAX,
    );
    values::short(
        faults,
        format!("{at}.code_version"),
        &asset.code_version,
        values::NAME_BYTES_MAX,
    );
    values::short(
        faults,
        format!("{at}.io"),
        &asset.io,
        values::NAME_BYTES_MAX,
    );
    values::config(faults, &format!("{at}.config_json"), &asset.config_json);
    check_labels(faults, at, asset);
    check_code(faults, at, asset, manifest);
    check_checks(faults, at, &asset.checks);
    check_secrets(faults, at, asset);
    if let Some(retry) = &asset.retry {
        check_retry(faults, &format!("{at}.retry"), retry);
    }
    if let Some(timeouts) = &asset.timeouts {
        values::duration(
            faults,
            &format!("{at}.timeouts.execution"),
            timeouts.execution,
            false,
        );
        values::duration(
            faults,
            &format!("{at}.timeouts.dispatch_ack"),
            timeouts.dispatch_ack,
            false,
        );
        values::duration(
            faults,
            &format!("{at}.timeouts.heartbeat"),
            timeouts.heartbeat,
            false,
        );
    }
    if let Some(freshness) = &asset.freshness {
        values::duration(
            faults,
            &format!("{at}.freshness.max_age"),
            freshness.max_age,
            false,
        );
        values::zone(
            faults,
            &format!("{at}.freshness.time_zone"),
            &freshness.time_zone,
        );
        if !freshness.deadline_cron.is_empty() {
            values::cron(
                faults,
                &format!("{at}.freshness.deadline_cron"),
                &freshness.deadline_cron,
            );
        }
    }
}

fn check_labels(faults: &mut Faults, at: &str, asset: &AssetDefinition) {
    let capabilities = asset
        .resources
        .as_ref()
        .map_or(&[][..], |resources| &resources.capabilities);
    let lists = [("owners", asset.owners.len()), ("tags", asset.tags.len())];
    for (field, count) in lists
        .into_iter()
        .chain([("resources.capabilities", capabilities.len())])
    {
        if count > LIST_ITEMS_MAX {
            faults.add(
                format!("{at}.{field}"),
                format!("has {count} entries; at most {LIST_ITEMS_MAX} are allowed"),
            );
        }
    }
    for (index, owner) in asset.owners.iter().enumerate() {
        values::name(faults, format!("{at}.owners[{index}]"), owner);
    }
    for (key, value) in &asset.tags {
        values::name(faults, format!("{at}.tags"), key);
        values::short(
            faults,
            format!("{at}.tags[{}]", short_key(key)),
            value,
            values::NAME_BYTES_MAX,
        );
    }
    for (index, capability) in capabilities.iter().enumerate() {
        values::name(
            faults,
            format!("{at}.resources.capabilities[{index}]"),
            capability,
        );
    }
}

fn short_key(key: &str) -> &str {
    &key[..key.floor_char_boundary(32)]
}

fn check_code(faults: &mut Faults, at: &str, asset: &AssetDefinition, manifest: &Manifest) {
    let path = format!("{at}.code");
    match &asset.code {
        Some(_) if asset.source => {
            faults.add(path, "a source is made elsewhere; leave its code out")
        }
        Some(_) if !asset.made_by.is_empty() => faults.add(
            path,
            "the asset in made_by brings the code; leave it out here",
        ),
        None if !asset.source && asset.made_by.is_empty() => faults.add(
            path,
            "is missing; say how the asset is made, or call it a source",
        ),
        Some(code) => check_code_ref(faults, &path, code, manifest),
        None => {}
    }
}

pub(super) fn check_code_ref(faults: &mut Faults, path: &str, code: &CodeRef, manifest: &Manifest) {
    if !code.artifact_digest.is_empty() {
        values::digest(
            faults,
            &format!("{path}.artifact_digest"),
            &code.artifact_digest,
        );
    }
    match &code.target {
        None => faults.add(path, "has no target; name an entry_point or a handler"),
        Some(Target::Handler(handler)) => {
            values::name(faults, format!("{path}.handler.name"), &handler.name);
            values::config(
                faults,
                &format!("{path}.handler.config_json"),
                &handler.config_json,
            );
        }
        Some(Target::EntryPoint(entry)) => {
            values::name(faults, format!("{path}.entry_point.module"), &entry.module);
            values::name(
                faults,
                format!("{path}.entry_point.function"),
                &entry.function,
            );
            if code.artifact_digest.is_empty() && manifest.artifact.is_none() {
                faults.add(
                    path,
                    "names a function, but the manifest has no artifact; add one or use a handler",
                );
            }
        }
    }
}

fn check_checks(faults: &mut Faults, at: &str, checks: &[CheckDefinition]) {
    let mut seen = HashSet::new();
    for (index, check) in checks.iter().enumerate() {
        let path = format!("{at}.checks[{index}]");
        values::name(faults, format!("{path}.name"), &check.name);
        if !seen.insert(&check.name) {
            faults.add(
                format!("{path}.name"),
                format!("`{}` appears twice in this asset; keep one", check.name),
            );
        }
        if check.spec.is_none() {
            faults.add(&path, "does not say what is checked; give it a spec");
        }
        values::listed::<Severity>(faults, &format!("{path}.severity"), check.severity);
        values::listed::<CheckPhase>(faults, &format!("{path}.phase"), check.phase);
        values::duration(faults, &format!("{path}.timeout"), check.timeout, false);
    }
}

fn check_secrets(faults: &mut Faults, at: &str, asset: &AssetDefinition) {
    let mut seen = HashSet::new();
    for (index, secret) in asset.secrets.iter().enumerate() {
        let path = format!("{at}.secrets[{index}]");
        values::name(faults, format!("{path}.name"), &secret.name);
        values::name(faults, format!("{path}.path"), &secret.path);
        if !seen.insert(&secret.name) {
            faults.add(
                format!("{path}.name"),
                "appears twice in this asset; keep one",
            );
        }
        if !SECRET_PROVIDERS.contains(&secret.provider.as_str()) {
            let known = SECRET_PROVIDERS.join(" or ");
            faults.add(
                format!("{path}.provider"),
                format!("is not known; write {known}"),
            );
        }
    }
}

fn check_retry(faults: &mut Faults, path: &str, retry: &RetryPolicy) {
    if retry.max_attempts > MAX_ATTEMPTS_MAX {
        let sentence = format!(
            "is {}; at most {MAX_ATTEMPTS_MAX} are allowed",
            retry.max_attempts
        );
        faults.add(format!("{path}.max_attempts"), sentence);
    }
    values::listed::<Backoff>(faults, &format!("{path}.backoff"), retry.backoff);
    values::duration(
        faults,
        &format!("{path}.initial_delay"),
        retry.initial_delay,
        true,
    );
    values::duration(faults, &format!("{path}.max_delay"), retry.max_delay, true);
    for (index, category) in retry.retry_on_categories.iter().enumerate() {
        let known =
            ErrorCategory::try_from(*category).is_ok_and(|c| c != ErrorCategory::Unspecified);
        if !known {
            faults.add(
                format!("{path}.retry_on_categories[{index}]"),
                "is not an error category",
            );
        }
    }
    for (field, types) in [
        ("retry_on_types", &retry.retry_on_types),
        ("never_on_types", &retry.never_on_types),
    ] {
        for (index, name) in types.iter().enumerate() {
            values::name(faults, format!("{path}.{field}[{index}]"), name);
        }
    }
}
