//! Keys that a trust root lists take the places of those before.

use super::{Passed, Point, Replaced, Succession, SuccessionError, pass, system};
use crate::attest::{KeyUse, Role, TrustRoot};
use crate::signer::sealed::{is_listed, read_at, validity};
use crate::signer::{USES, files, places};

impl Succession<'_> {
    /// Puts every waiting key that `trust` lists in its place, and deletes kept keys that it revokes.
    pub(super) fn place(
        &self,
        trust: &TrustRoot,
        passed: Passed<'_>,
    ) -> Result<Vec<Replaced>, SuccessionError> {
        let mut replaced = Vec::new();
        for used in USES {
            replaced.extend(self.place_one(used, trust, passed)?);
        }
        for role in Role::ALL {
            self.drop_revoked(role.into(), trust)?;
        }
        Ok(replaced)
    }

    fn place_one(
        &self,
        used: KeyUse,
        trust: &TrustRoot,
        passed: Passed<'_>,
    ) -> Result<Option<Replaced>, SuccessionError> {
        let next = places::next_key_file(self.folder(), used);
        let keyid = match read_at(used, &next) {
            Ok(file) if is_listed(used, &file.header().keyid, trust) => file.header().keyid.clone(),
            // Nobody lists it yet: it waits for a version that does.
            _ => return Ok(None),
        };
        let present = places::key_file(self.folder(), used);
        if let Ok(before) = read_at(used, &present)
            && before.header().keyid != keyid
            && Role::parse(used.name()).is_some()
            && validity(used, &before.header().keyid, trust)
                .is_some_and(|validity| validity.revoked.is_none())
        {
            let previous = places::previous_key_file(self.folder(), used);
            let kept = files::write_whole(&previous, &before.to_bytes(), true);
            kept.map_err(system("writing", &previous))?;
        }
        pass(passed, Point::PreviousKept)?;
        std::fs::rename(&next, &present).map_err(system("putting in place", &present))?;
        files::sync_folder(self.folder()).map_err(system("writing", self.folder()))?;
        pass(passed, Point::KeyInPlace)?;
        Ok(Some(Replaced { used, keyid }))
    }

    /// A revoked key signs nothing more, not even what was drafted before.
    fn drop_revoked(&self, used: KeyUse, trust: &TrustRoot) -> Result<(), SuccessionError> {
        let path = places::previous_key_file(self.folder(), used);
        let Ok(file) = read_at(used, &path) else {
            return Ok(());
        };
        let revoked = validity(used, &file.header().keyid, trust)
            .is_none_or(|validity| validity.revoked.is_some());
        if revoked {
            std::fs::remove_file(&path).map_err(system("deleting", &path))?;
            files::sync_folder(self.folder()).map_err(system("writing", self.folder()))?;
        }
        Ok(())
    }
}
