//! The HTTP routes of servo.v1: no two collide, and every part of a request has a position in its
//! route.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use servo_model::presign::CallbackVerb;
use servo_proto::access::{HttpRoute, Method, methods};

#[test]
fn no_two_methods_share_a_route() -> Result<()> {
    let mut seen = BTreeMap::new();
    for (method, route) in routes() {
        let shape = format!("{} {}", route.verb, shape(&route.template));
        if let Some(other) = seen.insert(shape, &method.path) {
            anyhow::bail!(
                "{} and {other} share {} {}",
                method.path,
                route.verb,
                route.template
            );
        }
    }
    ensure!(seen.len() > 100, "only {} routes were read", seen.len());
    Ok(())
}

#[test]
fn every_route_variable_is_a_text_field_of_the_request() -> Result<()> {
    for (method, route) in routes() {
        let request = request_of(method)?;
        for name in variables(&route.template) {
            let field = request.get_field_by_name(name);
            let is_text = field.is_some_and(|f| f.kind() == Kind::String && !f.is_list());
            ensure!(
                is_text,
                "{}: {{{name}}} is not a text field of {}",
                method.path,
                request.full_name()
            );
        }
    }
    Ok(())
}

#[test]
fn route_begins_with_the_scope() -> Result<()> {
    for (method, route) in routes() {
        let request = request_of(method)?;
        let scoped = |number, name| request.get_field(number).is_some_and(|f| f.name() == name);
        let prefix = match (scoped(1, "tenant"), scoped(2, "workspace")) {
            (true, true) => "/v1/tenants/{tenant}/workspaces/{workspace}",
            (true, false) => "/v1/tenants",
            _ => "/v1/",
        };
        ensure!(
            route.template.starts_with(prefix),
            "{}: {} lacks {prefix}",
            method.path,
            route.template
        );
    }
    Ok(())
}

// HTTP has no way to write a list of messages into a query.
#[test]
fn query_fields_are_simple() -> Result<()> {
    for (method, route) in routes().filter(|(_, r)| r.body.is_empty()) {
        let request = request_of(method)?;
        for field in request
            .fields()
            .filter(|f| !variables(&route.template).any(|v| v == f.name()))
        {
            ensure!(
                is_simple(&field),
                "{}: {} does not fit into a query",
                method.path,
                field.full_name()
            );
        }
    }
    Ok(())
}

#[test]
fn route_body_is_a_field_of_the_request() -> Result<()> {
    for (method, route) in routes().filter(|(_, r)| !r.body.is_empty() && r.body != "*") {
        let request = request_of(method)?;
        let found = request.get_field_by_name(&route.body).is_some();
        ensure!(
            found,
            "{}: no field {} in {}",
            method.path,
            route.body,
            request.full_name()
        );
    }
    Ok(())
}

#[test]
fn callbacks_use_the_presigned_paths() {
    let base = "/v1/tenants/{tenant}/workspaces/{workspace}/runs/{run_id}/attempts/{attempt_id}/";
    let verbs = [
        ("StartAttempt", CallbackVerb::Start),
        ("Heartbeat", CallbackVerb::Heartbeat),
        ("AppendLogs", CallbackVerb::Logs),
        ("FinishAttempt", CallbackVerb::Finished),
    ];
    for (name, verb) in verbs {
        let verb = verb.name();
        let expected = HttpRoute {
            verb: "POST",
            template: format!("{base}{verb}"),
            body: "*".to_owned(),
        };
        let method = methods().iter().find(|m| m.name == name).unwrap();
        assert_eq!(method.routes, [expected]);
    }
}

fn routes() -> impl Iterator<Item = (&'static Method, &'static HttpRoute)> {
    methods()
        .iter()
        .flat_map(|m| m.routes.iter().map(move |r| (m, r)))
}

fn request_of(method: &Method) -> Result<MessageDescriptor> {
    let service = servo_proto::descriptors()
        .get_service_by_name(&method.service)
        .context("no service")?;
    Ok(service
        .methods()
        .find(|m| m.name() == method.name)
        .context("no method")?
        .input())
}

fn variables(template: &str) -> impl Iterator<Item = &str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
}

// The template with its variables made equal, because a router cannot distinguish them.
fn shape(template: &str) -> String {
    variables(template).fold(template.to_owned(), |shape, name| {
        shape.replace(&format!("{{{name}}}"), "*")
    })
}

fn is_simple(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(message) => message.package_name() == "google.protobuf" && !field.is_list(),
        _ => true,
    }
}
