//! Permissions and the built-in roles that hold them: the one table by which the gateway and every
//! service decide whether a call is allowed. `docs/permissions.md` is generated from it.

use std::fmt;
use std::str::FromStr;

use crate::coded_enum::coded_enum;

coded_enum! {
    /// A permission that a method requires from its caller. The number is its bit in [`Grants`]; it
    /// is neither stored nor sent.
    Permission {
        /// Read assets, lineage, deployments, plans, partitions, materialisations and check results.
        AssetsRead = 0, "assets.read";
        /// Register a deployment.
        AssetsDeploy = 1, "assets.deploy";
        /// Upload code for a deployment.
        ArtifactsWrite = 2, "artifacts.write";
        /// Add and remove the values of dynamic partition sets.
        PartitionsManage = 3, "partitions.manage";
        /// Approve or reject a materialisation in quarantine.
        QuarantineResolve = 4, "quarantine.resolve";

        /// Read runs and tasks, and why they wait.
        RunsRead = 5, "runs.read";
        /// Start a run.
        RunsTrigger = 6, "runs.trigger";
        /// Retry a run.
        RunsRetry = 7, "runs.retry";
        /// Pause and resume a run.
        RunsPause = 8, "runs.pause";
        /// Cancel a run or a task.
        RunsCancel = 9, "runs.cancel";
        /// Read the logs of tasks.
        LogsRead = 10, "logs.read";
        /// Read the events of the ledger.
        EventsRead = 11, "events.read";

        /// Read backfills and preview one.
        BackfillsRead = 12, "backfills.read";
        /// Start a backfill, also of another one's failed partitions.
        BackfillsCreate = 13, "backfills.create";
        /// Pause, resume and cancel backfills.
        BackfillsManage = 14, "backfills.manage";

        /// Read schedules, sensors, their ticks and evaluations, and decisions.
        AutomationRead = 15, "automation.read";
        /// Run a schedule or evaluate a sensor now.
        AutomationTrigger = 16, "automation.trigger";
        /// Pause and resume schedules and sensors.
        AutomationPause = 17, "automation.pause";
        /// Create, change and delete schedules and sensors, and reset cursors.
        AutomationManage = 18, "automation.manage";

        /// List workers.
        WorkersRead = 19, "workers.read";
        /// Drain and kill workers.
        WorkersManage = 20, "workers.manage";
        /// List attempts under way and pauses of dispatch.
        DispatchRead = 21, "dispatch.read";
        /// Pause and resume dispatch.
        DispatchManage = 22, "dispatch.manage";

        /// Read a tenant's limits and their use.
        QuotasRead = 23, "quotas.read";
        /// Change the limits of a tenant or of the platform.
        QuotasManage = 24, "quotas.manage";
        /// Read pools.
        PoolsRead = 25, "pools.read";
        /// Create, change and delete pools.
        PoolsManage = 26, "pools.manage";
        /// Read usage, costs and prices.
        CostsRead = 27, "costs.read";
        /// Change the prices of a tenant or of the platform.
        PricesManage = 28, "prices.manage";
        /// Read budgets.
        BudgetsRead = 29, "budgets.read";
        /// Create, change and delete budgets.
        BudgetsManage = 30, "budgets.manage";

        /// Read one's own identity and permissions.
        SelfRead = 31, "self.read";
        /// Read workspaces.
        WorkspacesRead = 32, "workspaces.read";
        /// Create, suspend and resume workspaces.
        WorkspacesManage = 33, "workspaces.manage";
        /// Read roles and role bindings.
        RolesRead = 34, "roles.read";
        /// Create, change and delete roles and role bindings.
        RolesManage = 35, "roles.manage";
        /// List API keys, without their secrets.
        KeysRead = 36, "keys.read";
        /// Create and revoke API keys.
        KeysManage = 37, "keys.manage";
        /// Read the audit trail.
        AuditRead = 38, "audit.read";

        /// Register as a worker, take attempts and download their code.
        WorkPull = 39, "work.pull";
        /// Report attempts on a stream.
        WorkReport = 40, "work.report";

        /// Read tenants.
        TenantsRead = 41, "tenants.read";
        /// Create, suspend and resume tenants.
        TenantsManage = 42, "tenants.manage";
        /// Read projections, rebuilds and poison messages of the platform.
        SystemRead = 43, "system.read";
        /// Rebuild projections and replay poison messages.
        SystemManage = 44, "system.manage";
    }
}

coded_enum! {
    /// A built-in role of a tenant. Each of the first four holds all permissions of the one before.
    Role {
        /// Sees what runs and why, for dashboards.
        Viewer = 1, "viewer";
        /// Runs, cancels, retries and pauses, for people on call.
        Operator = 2, "operator";
        /// Deploys, backfills and changes schedules and sensors.
        Developer = 3, "developer";
        /// Everything within the tenant, including keys, roles, pools and budgets.
        Admin = 4, "admin";
        /// Takes attempts and reports them; the role of workers with a certificate.
        Worker = 5, "worker";
    }
}

const VIEWER: &[Role] = &[Role::Viewer, Role::Operator, Role::Developer, Role::Admin];
const OPERATOR: &[Role] = &[Role::Operator, Role::Developer, Role::Admin];
const DEVELOPER: &[Role] = &[Role::Developer, Role::Admin];
const ADMIN: &[Role] = &[Role::Admin];
const WORKER: &[Role] = &[Role::Admin, Role::Worker];
const EVERY: &[Role] = Role::ALL;
/// Permissions over the platform as a whole, which no role of a tenant holds.
const PLATFORM: &[Role] = &[];

impl Permission {
    /// The roles that hold it. The platform operator holds every permission.
    pub const fn roles(self) -> &'static [Role] {
        use Permission::*;
        match self {
            SelfRead => EVERY,
            AssetsRead | RunsRead | LogsRead | EventsRead | BackfillsRead | AutomationRead
            | WorkersRead | DispatchRead | QuotasRead | PoolsRead | CostsRead | BudgetsRead
            | WorkspacesRead | RolesRead => VIEWER,
            RunsTrigger | RunsRetry | RunsPause | RunsCancel | BackfillsManage
            | AutomationTrigger | AutomationPause | WorkersManage | DispatchManage
            | QuarantineResolve => OPERATOR,
            AssetsDeploy | ArtifactsWrite | PartitionsManage | BackfillsCreate
            | AutomationManage => DEVELOPER,
            PoolsManage | BudgetsManage | WorkspacesManage | RolesManage | KeysRead
            | KeysManage | AuditRead => ADMIN,
            WorkPull | WorkReport => WORKER,
            TenantsRead | TenantsManage | QuotasManage | PricesManage | SystemRead
            | SystemManage => PLATFORM,
        }
    }
}

/// A set of permissions: what a principal may do in one tenant and workspace.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Grants(u64);

const _: () = assert!(Permission::ALL.len() <= u64::BITS as usize);

impl Grants {
    /// Everything: the grants of the platform operator.
    pub fn platform() -> Grants {
        Permission::ALL.iter().copied().collect()
    }

    pub fn of_role(role: Role) -> Grants {
        let held = |permission: &Permission| permission.roles().contains(&role);
        Permission::ALL.iter().copied().filter(held).collect()
    }

    pub fn of_roles(roles: &[Role]) -> Grants {
        let all = roles.iter().map(|role| Grants::of_role(*role));
        Grants(all.fold(0, |grants, role| grants | role.0))
    }

    pub fn contains(self, permission: Permission) -> bool {
        self.0 & bit(permission) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Permission> {
        let all = Permission::ALL.iter().copied();
        all.filter(move |permission| self.contains(*permission))
    }
}

fn bit(permission: Permission) -> u64 {
    1 << permission.code()
}

impl FromIterator<Permission> for Grants {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Grants {
        let bits = permissions.into_iter().map(bit);
        Grants(bits.fold(0, |grants, bit| grants | bit))
    }
}

/// Names joined by commas, as the gateway forwards them.
impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, permission) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{permission}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grants({self})")
    }
}

/// Unknown names are ignored, because a gateway of the next version may forward permissions that
/// no method of this version requires.
impl FromStr for Grants {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Grants, Self::Err> {
        let known = |name| Permission::ALL.iter().find(|one| one.name() == name);
        Ok(text.split(',').filter_map(known).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_of_people_holds_what_the_one_before_holds() {
        let people = [Role::Viewer, Role::Operator, Role::Developer, Role::Admin];
        for pair in people.windows(2) {
            let (less, more) = (Grants::of_role(pair[0]), Grants::of_role(pair[1]));
            assert!(less.iter().all(|permission| more.contains(permission)));
            assert_ne!(less, more, "{} and {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn no_role_of_a_tenant_governs_the_platform() {
        let tenant = Grants::of_roles(Role::ALL);
        for permission in Permission::ALL {
            let name = permission.name();
            let platform = ["system.", "tenants."]
                .iter()
                .any(|area| name.starts_with(area))
                || ["quotas.manage", "prices.manage"].contains(&name);
            assert_eq!(tenant.contains(*permission), !platform, "{name}");
            assert!(Grants::platform().contains(*permission), "{name}");
        }
    }

    #[test]
    fn viewers_only_read() {
        for permission in Grants::of_role(Role::Viewer).iter() {
            assert!(permission.name().ends_with(".read"), "{permission}");
        }
    }

    #[test]
    fn workers_only_work() {
        let names = Grants::of_role(Role::Worker).to_string();
        assert_eq!(names, "self.read,work.pull,work.report");
    }

    #[test]
    fn grants_survive_a_round_trip_and_ignore_unknown_names() {
        for role in Role::ALL {
            let grants = Grants::of_role(*role);
            assert_eq!(grants.to_string().parse(), Ok(grants));
        }
        let parsed: Grants = "runs.read,runs.invent,,Runs.cancel".parse().unwrap();
        assert_eq!(parsed, [Permission::RunsRead].into_iter().collect());
        assert_eq!("".parse(), Ok(Grants::default()));
    }
}
