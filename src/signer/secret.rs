//! From the text of a secret to the bytes that open a key file.

use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use crate::attest::KeyUse;
use crate::attest::keys::{Argon2Cost, Fill, FillError, Kdf};
use crate::config::{Configuration, Environment, Keys, SecretError};

/// A secret as key files take it. Wiped when dropped.
pub(super) struct Secret {
    bytes: Zeroizing<Vec<u8>>,
    random: bool,
}

impl Secret {
    /// 64 hexadecimal digits are 32 random bytes (`openssl rand -hex 32` prints such), any other text is a passphrase.
    pub(super) fn from_text(text: &str) -> Self {
        let mut decoded = Zeroizing::new(vec![0; 32]);
        let random = hex::decode_to_slice(text, &mut decoded).is_ok();
        let bytes = if random {
            decoded
        } else {
            Zeroizing::new(text.as_bytes().to_vec())
        };
        Self { bytes, random }
    }

    /// The secret of one key, from where the configuration says it is.
    pub(super) fn find(
        used: KeyUse,
        configuration: &Configuration,
        environment: &Environment,
    ) -> Result<Self, SecretError> {
        let source = configuration.keys.secret(used).source;
        let whose = format!("the {used}'s key");
        let found = source.resolve(&whose, &Keys::configuration_key(used), environment)?;
        Ok(Self::from_text(found.expose_secret()))
    }

    /// 32 random bytes and the line that is written into a secret's file.
    pub(super) fn generate(fill: Fill<'_>) -> Result<(Self, Zeroizing<String>), FillError> {
        let mut bytes = Zeroizing::new(vec![0; 32]);
        fill(&mut bytes)?;
        let mut line = Zeroizing::new(hex::encode(bytes.as_slice()));
        line.push('\n');
        Ok((
            Self {
                bytes,
                random: true,
            },
            line,
        ))
    }

    /// Whether it is the same secret as another.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How a key sealed under this secret is opened: at once for random bytes, slowly for what people can think up.
    pub(super) fn derivation(&self, fill: Fill<'_>) -> Result<Kdf, FillError> {
        let mut salt = [0; 16];
        fill(&mut salt)?;
        Ok(if self.random {
            Kdf::hkdf(salt)
        } else {
            Kdf::argon2id(Argon2Cost::default(), salt)
        })
    }
}

/// Two uses whose secrets are the same. Both came from this installation's operator, so a comparison that takes longer for
/// longer common beginnings tells nobody anything.
pub(super) fn shared(secrets: &[(KeyUse, &Secret)]) -> Option<(KeyUse, KeyUse)> {
    secrets.iter().enumerate().find_map(|(index, (used, one))| {
        let (later, _) = secrets
            .iter()
            .skip(index + 1)
            .find(|(_, other)| other.bytes == one.bytes)?;
        Some((*used, *later))
    })
}

/// The bytes that open a key file, from the text of a secret: see [`Secret::from_text`].
pub fn secret_bytes(text: &str) -> Zeroizing<Vec<u8>> {
    Secret::from_text(text).bytes
}
