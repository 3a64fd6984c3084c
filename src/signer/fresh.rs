//! New keys, still in memory only.

use zeroize::Zeroizing;

use super::roles::PerRole;
use super::{CreateError, TRUST_ROOT_SECONDS};
use crate::attest::keys::Fill;
use crate::attest::trust_root::{RoleKey, RoleKeys, SideKey};
use crate::attest::{KeyUse, Label, List, Role, SecretKey, TrustRoot, TrustRootDocument};
use crate::clock::Millis;
use crate::id::OrganisationId;

/// The keys of a new installation and the first trust root, which lists them.
pub(super) struct Fresh {
    pub(super) organisation: OrganisationId,
    /// The organisation as headers and trust roots write it.
    pub(super) label: Label,
    pub(super) root: SecretKey,
    pub(super) log: SecretKey,
    pub(super) roles: PerRole<SecretKey>,
    pub(super) trust: TrustRoot,
    /// The key that seals credentials.
    pub(super) credentials: Zeroizing<[u8; 32]>,
}

impl Fresh {
    /// Makes everything new; the organisation's id too, when none is given.
    pub(super) fn generate(
        organisation: Option<OrganisationId>,
        now: Millis,
        fill: Fill<'_>,
    ) -> Result<Self, CreateError> {
        let organisation = if let Some(organisation) = organisation {
            organisation
        } else {
            let mut entropy = [0; 10];
            fill(&mut entropy)?;
            OrganisationId::new(now, entropy)
        };
        let label = Label::new(organisation.as_str())?;
        let root = SecretKey::generate(&mut *fill)?;
        let roles = PerRole::each(|_| SecretKey::generate(&mut *fill))?;
        let log = SecretKey::generate(&mut *fill)?;
        let mut credentials = Zeroizing::new([0; 32]);
        fill(credentials.as_mut_slice())?;
        let mut document = TrustRootDocument::first(
            label.clone(),
            now,
            now.plus_seconds(TRUST_ROOT_SECONDS),
            root.public(),
            listed(&roles, now),
        );
        document.side_keys = Some(List::first_of([SideKey {
            not_before: Some(now),
            ..SideKey::from_public(Label::new(KeyUse::Log.name())?, log.public())
        }]));
        let trust = TrustRoot::sign(&document, &[&root])?;
        Ok(Self {
            organisation,
            label,
            root,
            log,
            roles,
            trust,
            credentials,
        })
    }
}

fn listed(roles: &PerRole<SecretKey>, now: Millis) -> RoleKeys {
    let of = |role| List::first_of([RoleKey::from_public(roles.of(role).public(), now)]);
    RoleKeys {
        proposer: of(Role::Proposer),
        policy: of(Role::Policy),
        approver: of(Role::Approver),
        executor: of(Role::Executor),
    }
}
