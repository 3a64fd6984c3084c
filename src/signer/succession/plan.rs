//! From wishes to the next version, and the new keys that it lists.

use super::{Succession, SuccessionError, Wish, system};
use crate::attest::keys::Fill;
use crate::attest::trust_root::{Change, Proposal, Revocation};
use crate::attest::{KeyFile, KeyId, KeyUse, Role, SecretKey, TrustRootDocument};
use crate::config::{KeySecret, SecretSource};
use crate::signer::sealed::{is_listed, lists_a_log_key, read_at};
use crate::signer::secret::Secret;
use crate::signer::{KeyringError, TRUST_ROOT_SECONDS, USES, files, key_file_in_use, places};

/// New keys that lie beside the present ones.
type Made = Vec<(KeyUse, SecretKey)>;

impl Succession<'_> {
    /// The next version as wished, with its new keys on the disk.
    pub(super) fn planned(
        &self,
        wishes: &[Wish],
        fill: Fill<'_>,
    ) -> Result<(Proposal, Made), SuccessionError> {
        let (mut changes, replaced) = self.changes(wishes)?;
        let mut made = Vec::new();
        for used in replaced {
            let key = self.next_key(used, &mut *fill)?;
            if used == KeyUse::Root {
                changes.push(Change::AddRoot(key.public()));
                changes.push(Change::RemoveRoot(self.root_here()?));
            } else {
                changes.push(Change::Key(used, key.public()));
            }
            made.push((used, key));
        }
        if changes.is_empty() {
            return Err(SuccessionError::Wish(
                "a new version of the trust root has to change something; say what".to_owned(),
            ));
        }
        let until = self.now.plus_seconds(TRUST_ROOT_SECONDS);
        let document = TrustRootDocument::after(self.trust(), &changes, self.now, until)?;
        Ok((Proposal::new(document)?, made))
    }

    /// Changes that need no new key, and the uses that need one. Revocations come first, so that what is revoked is not also
    /// said to count for a while yet.
    fn changes(&self, wishes: &[Wish]) -> Result<(Vec<Change>, Vec<KeyUse>), SuccessionError> {
        let refused = |problem: String| Err(SuccessionError::Wish(problem));
        let (mut changes, mut replaced) = (Vec::new(), Vec::new());
        for wish in wishes {
            match wish {
                Wish::Rotate(used) if !USES.contains(used) => {
                    return refused(format!("an installation has no key for {used}"));
                }
                Wish::Rotate(KeyUse::Log) if !lists_a_log_key(self.trust()) => {
                    return refused("the trust root lists no key of the log yet; `caretaker keys add log` makes one".to_owned());
                }
                Wish::AddLog if lists_a_log_key(self.trust()) => {
                    return refused("the log has a key already; `caretaker keys rotate log` puts another in its place".to_owned());
                }
                Wish::Rotate(used) => replaced.push(*used),
                Wish::Adopt(used, public) => changes.push(Change::Key(*used, public.clone())),
                Wish::AddLog => replaced.push(KeyUse::Log),
                Wish::Revoke {
                    keyid,
                    reason,
                    compromised_since,
                    at_index,
                } => {
                    let revocation = Revocation {
                        at: self.now,
                        at_index: *at_index,
                        compromised_since: *compromised_since,
                        reason: reason.clone(),
                    };
                    changes.insert(0, Change::Revoke(keyid.clone(), revocation));
                    replaced.extend(self.use_of(keyid));
                }
                Wish::AddRoot(public) => changes.push(Change::AddRoot(public.clone())),
                Wish::RemoveRoot(keyid) => changes.push(Change::RemoveRoot(keyid.clone())),
                Wish::Threshold(threshold) => changes.push(Change::Threshold(*threshold)),
            }
        }
        replaced.sort_unstable();
        replaced.dedup();
        Ok((changes, replaced))
    }

    /// What the key is used for here, if it is in use.
    fn use_of(&self, keyid: &KeyId) -> Option<KeyUse> {
        let daily = Role::ALL.into_iter().map(KeyUse::from);
        daily.chain([KeyUse::Log]).find(|used| {
            key_file_in_use(*used, self.configuration, self.trust())
                .is_ok_and(|(_, file)| file.header().keyid == *keyid)
        })
    }

    /// The root key that lies here, to be removed when another takes its place.
    fn root_here(&self) -> Result<KeyId, SuccessionError> {
        let path = places::key_file(self.folder(), KeyUse::Root);
        let keyid = read_at(KeyUse::Root, &path)?.header().keyid.clone();
        if is_listed(KeyUse::Root, &keyid, self.trust()) {
            return Ok(keyid);
        }
        Err(SuccessionError::NotRoot {
            path: path.display().to_string(),
            keyid,
            version: self.trust().document().version,
        })
    }

    /// The key that is to take another's place: the one that an interrupted command or a proposal left, or a new one, sealed
    /// under the secret of its use.
    fn next_key(&self, used: KeyUse, fill: Fill<'_>) -> Result<SecretKey, SuccessionError> {
        let path = places::next_key_file(self.folder(), used);
        let org = &self.trust().document().org;
        if let Ok(file) = read_at(used, &path)
            && file.header().org == *org
        {
            return self.opened(used, &file, &path);
        }
        let secret = self.secret(used, &mut *fill)?;
        let key = SecretKey::generate(&mut *fill)?;
        let derivation = secret.derivation(&mut *fill)?;
        let sealed = KeyFile::seal(&key, org, used, derivation, secret.bytes(), fill)
            .map_err(SuccessionError::Seal)?;
        files::write_whole(&path, &sealed.to_bytes(), true).map_err(system("writing", &path))?;
        Ok(key)
    }

    /// The secret of a use, or a new one where the configuration names none and there is none yet.
    fn secret(&self, used: KeyUse, fill: Fill<'_>) -> Result<Secret, SuccessionError> {
        if let KeySecret {
            source: SecretSource::File(path),
            generated: true,
        } = self.configuration.keys.secret(used)
            && !path.exists()
        {
            let (secret, line) = Secret::generate(fill)?;
            files::write_whole(&path, line.as_bytes(), false).map_err(system("writing", &path))?;
            return Ok(secret);
        }
        let find = |used| Secret::find(used, self.configuration, self.environment);
        let secret = find(used).map_err(|cause| KeyringError::Secret { used, cause })?;
        for other in USES.into_iter().filter(|other| *other != used) {
            if find(other).is_ok_and(|found| found.is(&secret)) {
                let (first, second) = (other, used);
                return Err(KeyringError::SharedSecret { first, second }.into());
            }
        }
        Ok(secret)
    }
}
