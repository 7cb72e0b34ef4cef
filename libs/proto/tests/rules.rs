//! An API that violates its own rules does not build. The build script calls the same two
//! functions.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use servo_proto::access::read_methods;

#[path = "../build/compile.rs"]
mod compile;
mod tree;

const SCHEDULER_MESH: &str = "servo/mesh/v1/scheduler.proto";
const OPEN: &str = "option (servo.v1.access) = {open: true};";

#[test]
fn method_without_an_access_rule_does_not_build() -> Result<()> {
    check(
        OPEN,
        "",
        "servo.v1.MeshService.GetServerInfo: has no access rule",
    )
}

#[test]
fn rule_set_to_false_does_not_build() -> Result<()> {
    check(
        OPEN,
        "option (servo.v1.access) = {open: false};",
        "`open` must be true",
    )
}

#[test]
fn unknown_caller_does_not_build() -> Result<()> {
    let rule = "option (servo.v1.access) = {callers: {services: [\"postman\"]}};";
    check(
        OPEN,
        rule,
        "GetServerInfo: among its callers `postman` is not a service",
    )
}

#[test]
fn callers_without_a_service_do_not_build() -> Result<()> {
    check(
        OPEN,
        "option (servo.v1.access) = {callers: {}};",
        "GetServerInfo: its callers name no service",
    )
}

#[test]
fn unknown_permission_does_not_build() -> Result<()> {
    for name in ["", "runs.invent"] {
        let rule = format!("option (servo.v1.access) = {{permission: \"{name}\"}};");
        let fault = format!("GetServerInfo: its permission `{name}` is not one of");
        check(OPEN, &rule, &fault)?;
    }
    Ok(())
}

#[test]
fn confined_method_that_names_a_workspace_does_not_build() -> Result<()> {
    let fault = "servo.v1.SchedulerService.TriggerRun: is `confined`";
    check_in(
        "servo/v1/scheduler.proto",
        "{permission: \"runs.trigger\"}",
        "{permission: \"runs.trigger\" confined: true}",
        fault,
    )
}

#[test]
fn public_method_without_a_route_does_not_build() -> Result<()> {
    let route = "    option (google.api.http) = {get: \"/v1/whoAmI\"};\n";
    let fault = "servo.v1.AccessService.WhoAmI: is public but has no route";
    check_in("servo/v1/access.proto", route, "", fault)
}

#[test]
fn stream_in_both_directions_with_a_route_does_not_build() -> Result<()> {
    let rule = "rpc PullTasks(stream PullTasksRequest) returns (stream PullTasksResponse) {\n";
    let routed = format!("{rule}    option (google.api.http) = {{post: \"/v1/pull\"}};\n");
    let fault = "DispatcherService.PullTasks: streams in both directions";
    check_in("servo/v1/dispatcher.proto", rule, &routed, fault)
}

#[test]
fn internal_method_with_a_route_does_not_build() -> Result<()> {
    let rule = "rpc CountRuns(CountRunsRequest) returns (CountRunsResponse) {\n";
    let routed = format!("{rule}    option (google.api.http) = {{get: \"/v1/runCount\"}};\n");
    let import = "import \"servo/v1/options.proto\";\n";
    let folder = tempfile::tempdir()?;
    tree::copy_and_change(folder.path(), SCHEDULER_MESH, rule, &routed)?;
    let file = folder.path().join(SCHEDULER_MESH);
    let imported = fs::read_to_string(&file)?.replace(
        import,
        &format!("import \"google/api/annotations.proto\";\n{import}"),
    );
    fs::write(&file, imported)?;
    expect_fault(folder.path(), "CountRuns: is internal but has a route")
}

#[test]
fn internal_method_of_the_public_package_does_not_build() -> Result<()> {
    let public = "{permission: \"self.read\"}";
    let internal = "{callers: {services: [\"console\"]}}";
    let fault = "servo.v1.AccessService.WhoAmI: is internal; move it to servo.mesh.v1";
    check_in("servo/v1/access.proto", public, internal, fault)
}

#[test]
fn public_method_of_the_mesh_package_does_not_build() -> Result<()> {
    let internal = "      callers: {\n        services: [\"quota\"]\n      }\n";
    let fault = "servo.mesh.v1.SchedulerMeshService.CountRuns: has no callers";
    check_in(
        SCHEDULER_MESH,
        internal,
        "      permission: \"runs.read\"\n",
        fault,
    )
}

fn check(before: &str, after: &str, fault: &str) -> Result<()> {
    check_in("servo/v1/mesh.proto", before, after, fault)
}

// Compiles a copy of the API in which `before` is replaced by `after` in `file`, and expects one
// fault.
fn check_in(file: &str, before: &str, after: &str, fault: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    tree::copy_and_change(folder.path(), file, before, after)?;
    expect_fault(folder.path(), fault)
}

fn expect_fault(folder: &Path, fault: &str) -> Result<()> {
    let faults = read_methods(&compile::compile(folder)?.descriptor_pool())
        .err()
        .unwrap_or_default();
    ensure!(
        faults.len() == 1 && faults[0].contains(fault),
        "{faults:?} should say only `{fault}`"
    );
    Ok(())
}
