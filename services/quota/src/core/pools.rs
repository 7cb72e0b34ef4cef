//! Checks pools and finds the assets that use them.

use servo_proto::v1::{Manifest, Pool};

use super::text::{BadField, check_name, check_text};

pub(crate) const POOLS_PER_TENANT_MAX: u64 = 1_000;

pub(crate) fn check(pool: &Pool) -> Result<(), BadField> {
    check_name("pool.pool", &pool.pool)?;
    check_text("pool.description", &pool.description)
}

/// Returns the workspace and key of the first asset that uses the pool.
pub(crate) fn first_user<'m>(
    manifests: &'m [(String, Manifest)],
    pool: &str,
) -> Option<(&'m str, &'m str)> {
    manifests.iter().find_map(|(workspace, manifest)| {
        let asset = manifest.assets.iter().find(|asset| asset.pool == pool)?;
        Some((workspace.as_str(), asset.key.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::AssetDefinition;

    use super::*;

    #[test]
    fn a_pool_is_in_use_when_an_asset_names_it() {
        let asset = |key: &str, pool: &str| AssetDefinition {
            key: key.into(),
            pool: pool.into(),
            ..AssetDefinition::default()
        };
        let manifest = |assets| Manifest {
            assets,
            ..Manifest::default()
        };
        let deployed = [
            ("dev".to_owned(), manifest(vec![asset("n/a", "")])),
            (
                "prod".to_owned(),
                manifest(vec![asset("n/a", "api"), asset("n/b", "db")]),
            ),
        ];
        assert_eq!(first_user(&deployed, "db"), Some(("prod", "n/b")));
        assert_eq!(first_user(&deployed, "gpu"), None);
    }

    #[test]
    fn invalid_fields_are_named() {
        let pool = |pool: &str, description: &str| Pool {
            pool: pool.into(),
            description: description.into(),
            ..Pool::default()
        };
        assert_eq!(check(&pool("db", "")), Ok(()));
        assert_eq!(check(&pool("", "")).unwrap_err().field, "pool.pool");
        assert_eq!(
            check(&pool("db", "\0")).unwrap_err().field,
            "pool.description"
        );
    }
}
