//! The keys, what opens them, and the trust root.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use super::Finding;
use crate::attest::{KeyUse, Role, TrustHistory, TrustRoot};
use crate::clock::Millis;
use crate::config::{Configuration, Environment, SecretSource};
use crate::signer::{self, CredentialSeal, Keyring, KeyringError, USES};

/// How long before its end a trust root is worth a remark, in seconds: 90 days.
const REMARK_SECONDS: i64 = 90 * 24 * 60 * 60;

pub(super) fn look(
    configuration: &Configuration,
    environment: &Environment,
    now: Millis,
) -> Vec<Finding> {
    let history = match signer::trust_history(configuration) {
        Ok(history) => Arc::new(history),
        Err(error) => return vec![Finding::failed("trust root", error.to_string())],
    };
    let trust = history.newest();
    let mut findings = vec![trust_root(trust, now)];
    match Keyring::open(configuration, environment, now) {
        Ok(keyring) => findings.extend(open(&keyring)),
        Err(error) => findings.extend(each(configuration, environment, &history, now, &error)),
    }
    findings.extend(modes(configuration));
    findings.extend(secrets_beside_keys(configuration));
    findings.extend(root_key(configuration));
    findings.extend(interrupted_rotation(configuration));
    findings.extend(waiting_keys(configuration, trust));
    findings
}

fn open(keyring: &Keyring) -> Vec<Finding> {
    let opened =
        |whose: &str| Finding::ok("keys", format!("{whose} open, each with its own secret"));
    if keyring.log_key().is_some() {
        return vec![opened("proposer, policy, approver, executor and log")];
    }
    let missing = "the trust root lists no key of the log, so that nobody can check the log's checkpoints; run `caretaker keys add log`, \
                   for which the root key has to be at hand";
    vec![
        opened("proposer, policy, approver and executor"),
        Finding::warning("log key", missing),
    ]
}

fn trust_root(trust: &TrustRoot, now: Millis) -> Finding {
    const CHECK: &str = "trust root";
    let document = trust.document();
    let (version, until) = (document.version, document.expires_at);
    if let Err(error) = trust.allow_acting(now) {
        Finding::failed(CHECK, error.to_string())
    } else if now < document.issued_at {
        Finding::failed(
            CHECK,
            format!(
                "version {version} was issued at {}, and this machine's clock says {now}; set the clock",
                document.issued_at
            ),
        )
    } else if until < now.plus_seconds(REMARK_SECONDS) {
        Finding::warning(
            CHECK,
            format!(
                "version {version} allows acting until {until}; have the root key sign a new version before then"
            ),
        )
    } else {
        Finding::ok(
            CHECK,
            format!("version {version}, allows acting until {until}"),
        )
    }
}

/// What is wrong, key by key: opening all of them stops at the first fault.
fn each(
    configuration: &Configuration,
    environment: &Environment,
    history: &Arc<TrustHistory>,
    now: Millis,
    first: &KeyringError,
) -> Vec<Finding> {
    let trust = history.newest();
    let mut faults: Vec<String> = Role::ALL
        .into_iter()
        .filter_map(|role| {
            signer::open_signer(role, configuration, environment, history, now).err()
        })
        .chain(signer::open_log_key(configuration, environment, trust, now).err())
        .chain(CredentialSeal::read(configuration).err())
        .map(|error| error.to_string())
        .collect();
    let expired = matches!(first, KeyringError::NotActing(_));
    if faults.is_empty() && !expired {
        faults.push(first.to_string());
    }
    faults
        .into_iter()
        .map(|fault| Finding::failed("keys", fault))
        .collect()
}

/// Files and the folder that others may read. Role secrets and the key of credentials are not among them: one that is open
/// to others is refused when it is used.
fn modes(configuration: &Configuration) -> Vec<Finding> {
    let directory = &configuration.keys.dir;
    let mut private: Vec<_> = USES
        .into_iter()
        .map(|used| (signer::key_file(directory, used), "600"))
        .collect();
    private.push((directory.clone(), "700"));
    if let SecretSource::File(path) = configuration.keys.secret(KeyUse::Root).source {
        private.push((path, "600"));
    }
    private
        .into_iter()
        .filter_map(|(path, right)| open_to_others(&path, right))
        .collect()
}

fn open_to_others(path: &Path, right: &str) -> Option<Finding> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o7777;
    (mode & 0o077 != 0).then(|| {
        let path = path.display();
        Finding::warning(
            "keys",
            format!("{path} is open to others (mode {mode:04o}); run: chmod {right} '{path}'"),
        )
    })
}

fn secrets_beside_keys(configuration: &Configuration) -> Option<Finding> {
    let directory = &configuration.keys.dir;
    let beside: Vec<&str> = USES
        .into_iter()
        .filter(|used| *used != KeyUse::Root && lies_beside(configuration, *used))
        .filter(|used| configuration.keys.signer(*used).is_none())
        // Installations made before the log have none.
        .filter(|used| *used != KeyUse::Log || signer::key_file(directory, *used).exists())
        .map(KeyUse::name)
        .collect();
    (!beside.is_empty()).then(|| {
        Finding::warning(
            "secrets",
            format!(
                "what opens the keys of {} lies beside them, so whoever reads the folder can sign; keep the secrets elsewhere and \
                 name the places under keys.roles",
                beside.join(", ")
            ),
        )
    })
}

fn lies_beside(configuration: &Configuration, used: KeyUse) -> bool {
    match configuration.keys.secret(used).source {
        SecretSource::File(path) => path.starts_with(&configuration.keys.dir),
        SecretSource::Environment(_) | SecretSource::Credential(_) => false,
    }
}

fn root_key(configuration: &Configuration) -> Option<Finding> {
    let file = signer::key_file(&configuration.keys.dir, KeyUse::Root);
    file.exists().then(|| {
        Finding::warning(
            "root key",
            format!(
                "{} lies with the keys that sign every day, which never need it; move it and what opens it offline",
                file.display()
            ),
        )
    })
}

/// Two keys of credentials are there only while one takes the other's place.
fn interrupted_rotation(configuration: &Configuration) -> Option<Finding> {
    let next = signer::next_credential_file(&configuration.keys.dir);
    next.exists().then(|| {
        Finding::warning(
            "keys",
            format!(
                "a rotation of the deployment key was interrupted ({} is there); credentials open all the same. Run `caretaker keys rotate-deployment` to end it, and do not delete that file",
                next.display()
            ),
        )
    })
}

/// A key that waits to take another's place: for a version that lists it, or because a command was interrupted after that.
fn waiting_keys(configuration: &Configuration, trust: &TrustRoot) -> Vec<Finding> {
    let waiting = |used: &KeyUse| signer::next_key_file(&configuration.keys.dir, *used).exists();
    let described = |used: KeyUse| {
        let path = signer::next_key_file(&configuration.keys.dir, used);
        let in_use = signer::key_file_in_use(used, configuration, trust);
        let path = path.display();
        Finding::warning(
            "keys",
            if in_use.is_ok_and(|(found, _)| found.extension().is_some_and(|end| end == "next")) {
                format!(
                    "changing the {used}'s key was interrupted: {path} is in use already; run `caretaker keys rotate {used}` to end it, and do not delete that file"
                )
            } else {
                format!(
                    "{path} waits for a trust root that lists it: run `caretaker keys rotate {used}`, or accept the version that was proposed; delete it if neither is wanted"
                )
            },
        )
    };
    USES.into_iter().filter(waiting).map(described).collect()
}
