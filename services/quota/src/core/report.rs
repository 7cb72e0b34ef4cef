//! The filter and the groups of a report of usage or cost.

use super::text::BadField;

/// The rows that a report includes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) workspace: Option<String>,
    pub(crate) asset: Option<String>,
    pub(crate) pool: Option<String>,
}

/// The dimensions that get separate lines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) workspace: bool,
    pub(crate) asset: bool,
    pub(crate) pool: bool,
}

pub(crate) fn groups(names: &[String], allowed: &[&str]) -> Result<Groups, BadField> {
    let mut groups = Groups::default();
    for (index, name) in names.iter().enumerate() {
        let group = match name.as_str() {
            "workspace" => &mut groups.workspace,
            "asset" => &mut groups.asset,
            "pool" if allowed.contains(&"pool") => &mut groups.pool,
            _ => {
                let sentence = format!(
                    "is `{name}`, which is not a group; write {}",
                    allowed.join(" or ")
                );
                return Err(BadField::new(format!("group_by[{index}]"), sentence));
            }
        };
        *group = true;
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recorded_dimensions_can_be_groups() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let all = groups(
            &names(&["workspace", "pool"]),
            &["workspace", "asset", "pool"],
        )
        .unwrap();
        assert_eq!(
            all,
            Groups {
                workspace: true,
                asset: false,
                pool: true
            }
        );
        let refused = groups(&names(&["asset", "run"]), &["workspace", "asset"]).unwrap_err();
        assert_eq!(refused.field, "group_by[1]");
        assert!(groups(&names(&["pool"]), &["workspace", "asset"]).is_err());
    }
}
