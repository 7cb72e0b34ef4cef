//! Computes a password's verifier as Postgres stores it, so that the password itself never appears
//! in a statement or a server log.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const ITERATIONS: u32 = 4_096;

/// RFC 5803: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`. The password is ASCII, so
/// SASLprep does not change it.
pub(super) fn verifier(password: &str, salt: [u8; 16]) -> String {
    let salted = salted_password(password.as_bytes(), &salt);
    let stored_key = Sha256::digest(hmac(&salted, b"Client Key"));
    let server_key = hmac(&salted, b"Server Key");
    format!(
        "SCRAM-SHA-256${ITERATIONS}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored_key),
        STANDARD.encode(server_key)
    )
}

/// One block of PBKDF2-HMAC-SHA-256, which is enough for 32 bytes.
fn salted_password(password: &[u8], salt: &[u8]) -> [u8; 32] {
    let mut block = hmac(password, &[salt, &1u32.to_be_bytes()].concat());
    let mut sum = block;
    for _ in 1..ITERATIONS {
        block = hmac(password, &block);
        sum.iter_mut()
            .zip(block)
            .for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3: user `user`, password `pencil`.
    #[test]
    fn agrees_with_the_example_of_rfc_7677() {
        let salt: [u8; 16] = STANDARD
            .decode("W22ZaJ0SNY7soEsUEjb6gQ==")
            .unwrap()
            .try_into()
            .unwrap();
        let first_bare = "n=user,r=rOprNGfwEbeRWgbNEkqO";
        let server_first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let final_bare = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let message = format!("{first_bare},{server_first},{final_bare}");
        let server_key = hmac(&salted_password(b"pencil", &salt), b"Server Key");
        let signature = STANDARD.encode(hmac(&server_key, message.as_bytes()));
        assert_eq!(signature, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(
            verifier("pencil", salt).starts_with("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
        );
    }
}
