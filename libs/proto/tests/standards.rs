//! The standards of the API, checked for every method and message.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use servo_proto::access::{Access, PACKAGES, method_of, methods, permissions};

// These are idempotent by attempt, worker, digest or message instead of by request_id.
const WITHOUT_REQUEST_ID: [&str; 8] = [
    "StartAttempt",
    "Heartbeat",
    "AppendLogs",
    "FinishAttempt",
    "StreamCallbacks",
    "RegisterWorker",
    "PullTasks",
    "UploadArtifact",
];

#[test]
fn mutations_are_idempotent_and_return_their_event() -> Result<()> {
    for method in public_methods().filter(|m| !is_read(m) && m.name() != "DeliverWebhook") {
        let keyed = WITHOUT_REQUEST_ID.contains(&method.name());
        let name = method.full_name();
        ensure!(
            has(&method.input(), "request_id") != keyed,
            "{name}: request_id"
        );
        ensure!(
            has(&method.output(), "accepted_event_id") || keyed,
            "{name}: accepted_event_id"
        );
        ensure!(
            is_idempotent(&method)? || method.is_client_streaming(),
            "{name}: idempotency_level"
        );
    }
    Ok(())
}

#[test]
fn reads_have_no_request_id_or_event() -> Result<()> {
    for method in public_methods().filter(is_read) {
        ensure!(
            !has(&method.input(), "request_id"),
            "{}: request_id",
            method.full_name()
        );
        ensure!(
            !has(&method.output(), "accepted_event_id"),
            "{}: accepted_event_id",
            method.full_name()
        );
    }
    Ok(())
}

#[test]
fn only_reads_use_get() -> Result<()> {
    for method in public_methods() {
        let routes = &declared(&method)?.routes;
        let gets = routes.iter().any(|r| r.verb == "GET");
        ensure!(
            !gets || is_read(&method),
            "{}: GET changes something",
            method.full_name()
        );
        ensure!(
            !is_read(&method) || routes.iter().all(|r| ["GET", "POST"].contains(&r.verb)),
            "{}",
            method.full_name()
        );
    }
    Ok(())
}

#[test]
fn lists_are_paged() -> Result<()> {
    for method in public_methods().filter(|m| m.name().starts_with("List")) {
        let complete = has(&method.input(), "page_size")
            && has(&method.input(), "page_token")
            && has(&method.output(), "next_page_token");
        ensure!(
            complete,
            "{}: page_size, page_token, next_page_token",
            method.full_name()
        );
    }
    Ok(())
}

#[test]
fn tenant_and_workspace_are_the_first_fields() -> Result<()> {
    for method in public_methods() {
        let request = method.input();
        let number = |name| request.get_field_by_name(name).map(|f| f.number());
        ensure!(
            number("tenant").is_none_or(|n| n == 1),
            "{}: tenant",
            request.full_name()
        );
        let in_route = declared(&method)?
            .routes
            .iter()
            .any(|r| r.template.contains("{workspace}"));
        ensure!(
            !in_route || number("workspace") == Some(2),
            "{}: workspace",
            request.full_name()
        );
    }
    Ok(())
}

#[test]
fn every_permission_is_required_by_a_method() {
    let required: Vec<_> = permissions().into_iter().collect();
    assert_eq!(required, servo_model::Permission::ALL);
}

#[test]
fn comments_describe_repeats_and_refusals() -> Result<()> {
    let incomplete = |method: &MethodDescriptor| {
        let comment = comment_of(method).unwrap_or_default();
        !comment.contains("repeat") || !comment.to_lowercase().contains("refuses")
    };
    let incomplete: Vec<_> = all_methods()
        .filter(incomplete)
        .map(|m| m.full_name().to_owned())
        .collect();
    ensure!(
        incomplete.is_empty(),
        "these comments lack what a repeat does or when the method refuses: {incomplete:?}"
    );
    Ok(())
}

#[test]
fn refusals_in_comments_match_the_list_of_reasons() -> Result<()> {
    let codes = codes_of_reasons()?;
    let mut checked = 0;
    for method in all_methods() {
        for (code, reason) in refusals(&comment_of(&method)?, &codes) {
            checked += 1;
            let right = &codes[&reason];
            ensure!(
                *right == code,
                "{}: {reason} is {right}, not {code}",
                method.full_name()
            );
        }
    }
    ensure!(
        checked > 200,
        "only {checked} refusals were found in the comments"
    );
    Ok(())
}

#[test]
fn no_field_is_a_python_keyword() -> Result<()> {
    let words = [
        "and", "as", "class", "def", "del", "from", "global", "import", "in", "is", "not", "or",
        "pass",
    ];
    for message in pool()
        .all_messages()
        .filter(|m| PACKAGES.contains(&m.package_name()))
    {
        let clash = message.fields().find(|f| words.contains(&f.name()));
        ensure!(clash.is_none(), "{clash:?} cannot be written in Python");
    }
    Ok(())
}

fn pool() -> &'static DescriptorPool {
    servo_proto::descriptors()
}

fn all_methods() -> impl Iterator<Item = MethodDescriptor> {
    let services = pool()
        .services()
        .filter(|s| PACKAGES.contains(&s.package_name()));
    services.flat_map(|s| s.methods().collect::<Vec<_>>())
}

fn public_methods() -> impl Iterator<Item = MethodDescriptor> {
    let internal = |path: &String| {
        methods()
            .iter()
            .any(|m| m.path == *path && m.routes.is_empty())
    };
    all_methods().filter(move |m| !internal(&path_of(m)))
}

fn path_of(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

fn declared(method: &MethodDescriptor) -> Result<&'static servo_proto::access::Method> {
    method_of(&path_of(method)).context("a method of the descriptors is a method of the crate")
}

fn is_idempotent(method: &MethodDescriptor) -> Result<bool> {
    Ok(declared(method)?.idempotent)
}

fn is_read(method: &MethodDescriptor) -> bool {
    use prost_types::method_options::IdempotencyLevel::NoSideEffects;
    method
        .method_descriptor_proto()
        .options
        .as_ref()
        .is_some_and(|o| o.idempotency_level() == NoSideEffects)
}

fn has(message: &MessageDescriptor, field: &str) -> bool {
    message.get_field_by_name(field).is_some()
}

fn comment_of(method: &MethodDescriptor) -> Result<String> {
    comment_at(&method.parent_file(), method.path()).with_context(|| method.full_name().to_owned())
}

fn comment_at(file: &prost_reflect::FileDescriptor, path: &[i32]) -> Option<String> {
    let source = file.file_descriptor_proto().source_code_info.as_ref()?;
    source
        .location
        .iter()
        .find(|l| l.path == path)?
        .leading_comments
        .clone()
}

// Each reason's comment begins with its status code.
fn codes_of_reasons() -> Result<BTreeMap<String, String>> {
    let reasons = pool()
        .get_enum_by_name("servo.v1.ErrorReason")
        .context("no ErrorReason")?;
    let mut codes = BTreeMap::new();
    for value in reasons.values().filter(|v| v.number() != 0) {
        let comment = comment_at(&reasons.parent_file(), value.path())
            .context("a reason without a comment")?;
        let code = comment.split(':').next().unwrap_or_default().trim();
        ensure!(
            code.chars().all(|c| c.is_ascii_uppercase() || c == '_'),
            "{}: {code}",
            value.name()
        );
        codes.insert(
            value.name().trim_start_matches("ERROR_REASON_").to_owned(),
            code.to_owned(),
        );
    }
    Ok(codes)
}

// Pairs of status code and reason: "NOT_FOUND RUN_NOT_FOUND or TASK_NOT_FOUND" gives two.
fn refusals(comment: &str, codes: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let words: Vec<&str> = comment
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
    let is_code = |word: &str| codes.values().any(|c| c == word);
    let is_reason = |word: &str| codes.contains_key(word);
    let (mut code, mut found) = (None, Vec::new());
    for (i, word) in words.iter().enumerate() {
        let before_reason = words.get(i + 1).is_some_and(|next| is_reason(next));
        if is_code(word) && before_reason && code != Some(*word) {
            code = Some(*word);
        } else if let (true, Some(code)) = (is_reason(word), code) {
            found.push((code.to_owned(), (*word).to_owned()));
        }
    }
    found
}

#[test]
fn public_methods_have_no_caller_rule() {
    let public = methods().iter().filter(|m| !m.routes.is_empty());
    assert!(public.clone().count() > 100);
    assert!(
        public
            .clone()
            .all(|m| !matches!(m.access, Access::Callers(_)))
    );
}
