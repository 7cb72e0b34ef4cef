//! Parses the filter (a part of AIP-160) and the groups of a report of usage or cost.

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

/// Parses `field = "value" AND …`; the error is a sentence.
pub(crate) fn filter(text: &str) -> Result<Filter, String> {
    let mut filter = Filter::default();
    let mut rest = text.trim();
    let mut first = true;
    while !rest.is_empty() {
        if !first {
            let after = rest
                .strip_prefix("AND")
                .filter(|after| after.starts_with(char::is_whitespace));
            rest = after
                .ok_or_else(|| format!("`AND` is expected before `{rest}`"))?
                .trim_start();
        }
        first = false;
        rest = term(rest, &mut filter)?.trim_start();
    }
    Ok(filter)
}

fn term<'t>(text: &'t str, filter: &mut Filter) -> Result<&'t str, String> {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    let (field, rest) = text.split_at(end);
    let slot = match field {
        "workspace" => &mut filter.workspace,
        "asset" => &mut filter.asset,
        "pool" => &mut filter.pool,
        _ => {
            return Err(format!(
                "usage is not recorded by `{field}`; the fields are workspace, asset and pool"
            ));
        }
    };
    let rest = rest.trim_start().strip_prefix('=');
    let rest = rest
        .ok_or_else(|| format!("`=` is expected after `{field}`"))?
        .trim_start();
    let (value, rest) = value(rest)?;
    match slot.replace(value.to_owned()) {
        None => Ok(rest),
        Some(_) => Err(format!("`{field}` appears twice; keep one")),
    }
}

fn value(text: &str) -> Result<(&str, &str), String> {
    if text.contains('\0') {
        return Err("it contains a NUL".to_owned());
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted
            .split_once('"')
            .ok_or_else(|| "a quotation mark is not closed".to_owned());
    }
    let (value, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    match value {
        "" => Err("a value is missing at the end".to_owned()),
        value => Ok((value, rest)),
    }
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
    fn filters_are_terms_joined_by_and() {
        let read = |text| filter(text).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("  "), Filter::default());
        let both = Filter {
            workspace: some("prod"),
            asset: some("n/a"),
            pool: None,
        };
        assert_eq!(read("workspace = prod AND asset=\"n/a\""), both);
        assert_eq!(read("pool=\"\"").pool, some(""));
        for wrong in [
            "run_id = x",
            "workspace",
            "workspace =",
            "workspace > a",
            "workspace = a asset = b",
            "workspace = a AND",
            "workspace = a AND workspace = b",
            "asset = \"n/a",
            "asset = a\0",
        ] {
            // A trailing AND joins nothing, so it is an error too.
            assert!(filter(wrong).is_err(), "{wrong:?}");
        }
    }

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
