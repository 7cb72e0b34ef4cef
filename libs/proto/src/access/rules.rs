//! The access rules that every method declares, read from descriptors.
//!
//! The build script rejects an API with a fault; the crate reads the rules with the same code.

use prost_reflect::prost_types::method_options::IdempotencyLevel;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, MethodDescriptor, Value};
use servo_model::{Permission, Service};

const PUBLIC_PACKAGE: &str = "servo.v1";
const MESH_PACKAGE: &str = "servo.mesh.v1";
/// The packages of Servo.
pub const PACKAGES: [&str; 2] = [PUBLIC_PACKAGE, MESH_PACKAGE];
const ACCESS_OPTION: &str = "servo.v1.access";
const HTTP_OPTION: &str = "google.api.http";
// Every service serves it in addition to its own API, so a route could not identify the service.
const WITHOUT_ROUTES: &str = "servo.v1.MeshService";

/// A method and its declarations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// `servo.v1.SchedulerService`
    pub service: String,
    /// `GetRun`
    pub name: String,
    /// `/servo.v1.SchedulerService/GetRun`
    pub path: String,
    pub access: Access,
    /// A tenant-level method that principals confined to some workspaces may call.
    pub confined: bool,
    /// Repeating the call is harmless, so a caller may retry it.
    pub idempotent: bool,
    pub client_streaming: bool,
    pub server_streaming: bool,
    /// Empty for internal methods and for streams in both directions.
    pub routes: Vec<HttpRoute>,
}

/// The access rule of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Public: principals with this permission.
    Permission(Permission),
    /// Internal: these services, by certificate.
    Callers(Vec<Service>),
    /// Workers: the call carries a presigned path of its attempt.
    AttemptSignature,
    /// Every authenticated caller.
    Open,
}

/// Verb, path template and body of one HTTP binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRoute {
    /// `GET`, `PUT`, `POST`, `DELETE` or `PATCH`.
    pub verb: &'static str,
    /// `/v1/tenants/{tenant}/workspaces/{workspace}/runs/{run_id}`
    pub template: String,
    /// The field that the HTTP body fills, `*` for all, empty for none.
    pub body: String,
}

/// Returns all methods of both packages, or a sentence for each fault.
pub fn read_methods(pool: &DescriptorPool) -> Result<Vec<Method>, Vec<String>> {
    let services = pool
        .services()
        .filter(|s| PACKAGES.contains(&s.package_name()));
    let (mut methods, mut faults) = (Vec::new(), Vec::new());
    for method in services.flat_map(|s| s.methods().collect::<Vec<_>>()) {
        match read_method(pool, &method) {
            Ok(method) => methods.push(method),
            Err(fault) => faults.push(format!("{}: {fault}", method.full_name())),
        }
    }
    if faults.is_empty() {
        Ok(methods)
    } else {
        Err(faults)
    }
}

fn read_method(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<Method, String> {
    let service = method.parent_service().full_name().to_owned();
    let (access, confined) = read_access(pool, method)?;
    check_package(method.parent_service().package_name(), &access)?;
    let routes = option_of(pool, method, HTTP_OPTION)
        .map(|rule| read_routes(&rule))
        .unwrap_or_default();
    check_routes(&service, &access, is_bidirectional(method), &routes)?;
    Ok(Method {
        path: format!("/{service}/{}", method.name()),
        name: method.name().to_owned(),
        service,
        access,
        confined,
        idempotent: is_idempotent(method),
        client_streaming: method.is_client_streaming(),
        server_streaming: method.is_server_streaming(),
        routes,
    })
}

/// The rule, and whether it admits confined principals.
fn read_access(pool: &DescriptorPool, method: &MethodDescriptor) -> Result<(Access, bool), String> {
    let missing = "has no access rule; add `option (servo.v1.access) = {…}` with one of permission, callers, \
                   attempt_signature or open";
    let option = option_of(pool, method, ACCESS_OPTION).ok_or(missing)?;
    let is_rule = |field: &FieldDescriptor| field.containing_oneof().is_some();
    let rule = option.fields().find(|(field, _)| is_rule(field));
    let (field, value) = rule.ok_or(missing)?;
    let access = match (field.name(), value) {
        ("permission", Value::String(name)) => read_permission(name),
        ("callers", Value::Message(callers)) => read_callers(callers),
        ("attempt_signature", Value::Bool(true)) => Ok(Access::AttemptSignature),
        ("open", Value::Bool(true)) => Ok(Access::Open),
        (rule, _) => Err(format!(
            "its access rule `{rule}` must be true or be left out"
        )),
    }?;
    let confined = option.get_field_by_name("confined");
    let confined = confined.is_some_and(|value| value.as_bool() == Some(true));
    check_confined(method, &access, confined)?;
    Ok((access, confined))
}

fn read_permission(name: &str) -> Result<Access, String> {
    name.parse().map(Access::Permission).map_err(|_| {
        format!("its permission `{name}` is not one of servo_model::Permission; add it there")
    })
}

/// Only requests that name a tenant and no workspace leave the workspaces to the handler.
fn check_confined(
    method: &MethodDescriptor,
    access: &Access,
    confined: bool,
) -> Result<(), String> {
    let has = |name| method.input().get_field_by_name(name);
    let workspace_level = has("workspace").is_some_and(|field| field.number() == 2);
    let tenant_level = has("tenant").is_some() && !workspace_level;
    let public = matches!(access, Access::Permission(_));
    if confined && !(public && tenant_level) {
        return Err("is `confined`, which only a public method of a tenant can be".to_owned());
    }
    Ok(())
}

fn read_callers(callers: &DynamicMessage) -> Result<Access, String> {
    let services = callers.get_field_by_name("services");
    let names = services
        .as_ref()
        .and_then(|v| v.as_list())
        .unwrap_or_default();
    if names.is_empty() {
        return Err("its callers name no service; name at least one".to_owned());
    }
    let parse = |name: &Value| name.as_str().unwrap_or_default().parse::<Service>();
    let services: Result<Vec<_>, _> = names.iter().map(parse).collect();
    services
        .map(Access::Callers)
        .map_err(|unknown| format!("among its callers {unknown}"))
}

/// Internal methods have a package of their own, because the public one never changes after its
/// release and internal calls must be able to.
fn check_package(package: &str, access: &Access) -> Result<(), String> {
    let internal = matches!(access, Access::Callers(_));
    match (internal, package) {
        (true, PUBLIC_PACKAGE) => Err(format!("is internal; move it to {MESH_PACKAGE}")),
        (false, MESH_PACKAGE) => Err(format!(
            "has no callers; declare them, or move it to {PUBLIC_PACKAGE}"
        )),
        _ => Ok(()),
    }
}

fn check_routes(
    service: &str,
    access: &Access,
    bidirectional: bool,
    routes: &[HttpRoute],
) -> Result<(), String> {
    let internal = matches!(access, Access::Callers(_)) || service == WITHOUT_ROUTES;
    match (internal, bidirectional, routes.is_empty()) {
        (false, false, true) => {
            Err("is public but has no route; add `option (google.api.http) = {…}`".to_owned())
        }
        (true, _, false) => {
            Err("is internal but has a route; remove `option (google.api.http)`".to_owned())
        }
        (_, true, false) => Err(
            "streams in both directions, which HTTP/1.1 cannot; remove `option (google.api.http)`"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn is_bidirectional(method: &MethodDescriptor) -> bool {
    method.is_client_streaming() && method.is_server_streaming()
}

fn read_routes(rule: &DynamicMessage) -> Vec<HttpRoute> {
    let text = |name: &str| {
        let value = rule.get_field_by_name(name);
        value
            .as_ref()
            .and_then(|v| v.as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let verbs = [
        ("GET", "get"),
        ("PUT", "put"),
        ("POST", "post"),
        ("DELETE", "delete"),
        ("PATCH", "patch"),
    ];
    let own = verbs.into_iter().map(|(verb, field)| HttpRoute {
        verb,
        template: text(field),
        body: text("body"),
    });
    let mut routes: Vec<_> = own.filter(|r| !r.template.is_empty()).collect();
    let more = rule.get_field_by_name("additional_bindings");
    let more = more.as_ref().and_then(|v| v.as_list()).unwrap_or_default();
    routes.extend(
        more.iter()
            .filter_map(Value::as_message)
            .flat_map(read_routes),
    );
    routes
}

fn is_idempotent(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.as_ref();
    options.is_some_and(|o| o.idempotency_level() != IdempotencyLevel::IdempotencyUnknown)
}

fn option_of(
    pool: &DescriptorPool,
    method: &MethodDescriptor,
    name: &str,
) -> Option<DynamicMessage> {
    let (options, extension) = (method.options(), pool.get_extension_by_name(name)?);
    if !options.has_extension(&extension) {
        return None;
    }
    options.get_extension(&extension).as_message().cloned()
}
