//! A temporary certificate authority that gives every process of one machine an identity.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair as SigningKey, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::secret::write_private;

const CA_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 90;

/// A certificate chain and its key, both PEM.
#[derive(Debug, Clone)]
pub struct KeyPair {
    pub certificate: String,
    pub key: String,
}

impl KeyPair {
    /// Writes `<name>.crt` and `<name>.key` into `dir`; the key is readable by its owner only.
    pub fn write(&self, dir: &Path, name: &str) -> Result<()> {
        fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        // Writes the key first, so that a reader of the new certificate can load the pair.
        replace(&dir.join(format!("{name}.key")), &self.key)?;
        replace(&dir.join(format!("{name}.crt")), &self.certificate)
    }
}

/// The content of a certificate.
#[derive(Debug, Clone)]
pub struct Issue {
    uri: Option<String>,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
}

impl Issue {
    /// A certificate for `uri` (`spiffe://servo/planner`), valid now, for loopback.
    pub fn identity(uri: &str) -> Issue {
        let now = OffsetDateTime::now_utc();
        Issue {
            uri: Some(uri.to_owned()),
            not_before: now - Duration::hours(1),
            not_after: now + Duration::days(LEAF_DAYS),
        }
    }

    /// A certificate with a host name but without an identity.
    pub fn without_identity() -> Issue {
        Issue {
            uri: None,
            ..Issue::identity("")
        }
    }

    /// The same certificate, but expired.
    pub fn expired(mut self) -> Issue {
        self.not_before = OffsetDateTime::now_utc() - Duration::days(2);
        self.not_after = OffsetDateTime::now_utc() - Duration::days(1);
        self
    }

    fn params(&self) -> Result<CertificateParams> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        params
            .subject_alt_names
            .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        if let Some(uri) = &self.uri {
            params
                .subject_alt_names
                .push(SanType::URI(uri.as_str().try_into()?));
        }
        params.distinguished_name = name("Servo");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.not_before = self.not_before;
        params.not_after = self.not_after;
        Ok(params)
    }
}

/// The certificate authority.
pub struct Ca {
    certificate: String,
    issuer: Issuer<'static, SigningKey>,
}

impl Ca {
    pub fn new() -> Result<Ca> {
        let key = SigningKey::generate()?;
        let params = ca_params();
        let certificate = params.self_signed(&key)?.pem();
        Ok(Ca {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// The authority stored in `dir`, created on first use.
    pub fn load_or_create(dir: &Path) -> Result<Ca> {
        let (cert_path, key_path) = (dir.join("ca.crt"), dir.join("ca.key"));
        if let (Ok(certificate), Ok(key)) = (
            fs::read_to_string(&cert_path),
            fs::read_to_string(&key_path),
        ) {
            let key = SigningKey::from_pem(&key)
                .with_context(|| format!("read {}", key_path.display()))?;
            return Ok(Ca {
                certificate,
                issuer: Issuer::new(ca_params(), key),
            });
        }
        let ca = Ca::new()?;
        let pair = KeyPair {
            certificate: ca.certificate.clone(),
            key: ca.issuer.key().serialize_pem(),
        };
        pair.write(dir, "ca")?;
        Ok(ca)
    }

    /// The certificate of the authority, PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    pub fn issue(&self, issue: &Issue) -> Result<KeyPair> {
        let key = SigningKey::generate()?;
        let certificate = issue.params()?.signed_by(&key, &self.issuer)?.pem();
        Ok(KeyPair {
            certificate,
            key: key.serialize_pem(),
        })
    }
}

fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name = name("Servo local authority");
    params.not_before = OffsetDateTime::now_utc() - Duration::days(1);
    params.not_after = OffsetDateTime::now_utc() + Duration::days(CA_DAYS);
    params
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// Replaces a file atomically, so that a watcher never reads a part of it.
fn replace(path: &Path, text: &str) -> Result<()> {
    let next = path.with_extension("next");
    write_private(&next, text).with_context(|| format!("write {}", next.display()))?;
    fs::rename(&next, path).with_context(|| format!("write {}", path.display()))
}
