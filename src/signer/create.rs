//! Making the keys of an installation, wholly or not at all.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::fresh::Fresh;
use super::secret::{Secret, shared};
use super::{CreateError, USES, files, places};
use crate::attest::keys::Fill;
use crate::attest::{KeyFile, KeyId, KeyUse, Label, PublicKey, Role, SecretKey, TrustRoot};
use crate::clock::Millis;
use crate::config::{Configuration, Environment, KeySecret, SecretSource};
use crate::id::OrganisationId;

/// What was made.
#[derive(Debug)]
pub struct Created {
    /// The organisation.
    pub organisation: OrganisationId,
    /// The folder.
    pub directory: PathBuf,
    /// The trust root; its digest is what an auditor pins.
    pub trust: TrustRoot,
    /// The keys.
    pub keys: Vec<(KeyUse, KeyId)>,
    /// Files with secrets that were made because the configuration names none.
    pub generated_secrets: Vec<PathBuf>,
}

/// Makes a root key that lies nowhere yet, sealed under a secret: for a holder on another machine.
///
/// # Errors
/// There is no randomness, or the secret is empty.
pub fn seal_root_key(
    organisation: &OrganisationId,
    secret: &str,
    fill: Fill<'_>,
) -> Result<(PublicKey, Vec<u8>), CreateError> {
    let secret = Secret::from_text(secret);
    let key = SecretKey::generate(&mut *fill)?;
    let derivation = secret.derivation(&mut *fill)?;
    let label = Label::new(organisation.as_str())?;
    let sealed = KeyFile::seal(&key, &label, KeyUse::Root, derivation, secret.bytes(), fill)
        .map_err(CreateError::Seal)?;
    Ok((key.public(), sealed.to_bytes()))
}

/// A file of the new folder.
struct NewFile {
    name: PathBuf,
    bytes: Zeroizing<Vec<u8>>,
}

/// Makes the role keys, the root key, the log's key, the first trust root and the key of credentials in `keys.dir`, for the organisation
/// given or a new one. Secrets that the configuration names are used; where it names none, 32 random bytes are written beside
/// the key.
///
/// Everything is written into a folder beside `keys.dir`, brought to the disk, and put in place by one rename.
///
/// # Errors
/// The folder holds keys or anything else already, a secret is missing, or the system refuses; nothing is left behind then.
pub fn create(
    configuration: &Configuration,
    environment: &Environment,
    organisation: Option<OrganisationId>,
    now: Millis,
    fill: Fill<'_>,
) -> Result<Created, CreateError> {
    let directory = target(&configuration.keys.dir)?;
    let secrets = Secrets::collect(configuration, environment, &mut *fill)?;
    let fresh = Fresh::generate(organisation, now, &mut *fill)?;
    let mut contents = vec![
        NewFile {
            name: places::trust_root_file(Path::new(""), fresh.trust.document().version),
            bytes: Zeroizing::new(fresh.trust.to_bytes()?),
        },
        NewFile {
            name: places::credential_file(Path::new("")),
            bytes: Zeroizing::new(fresh.credentials.to_vec()),
        },
    ];
    let mut keys = Vec::new();
    for (used, secret) in &secrets.found {
        let key = secret_key(&fresh, *used);
        let derivation = secret.derivation(&mut *fill)?;
        let sealed = KeyFile::seal(
            key,
            &fresh.label,
            *used,
            derivation,
            secret.bytes(),
            &mut *fill,
        )
        .map_err(CreateError::Seal)?;
        keys.push((*used, key.public().keyid()));
        contents.push(NewFile {
            name: places::key_file(Path::new(""), *used),
            bytes: Zeroizing::new(sealed.to_bytes()),
        });
    }
    let generated_secrets = secrets
        .generated
        .iter()
        .map(|file| directory.join(&file.name))
        .collect();
    contents.extend(secrets.generated);
    write_folder(&directory, &contents)?;
    Ok(Created {
        organisation: fresh.organisation,
        directory,
        trust: fresh.trust,
        keys,
        generated_secrets,
    })
}

fn secret_key(fresh: &Fresh, used: KeyUse) -> &SecretKey {
    match Role::parse(used.name()) {
        Some(role) => fresh.roles.of(role),
        None if used == KeyUse::Log => &fresh.log,
        None => &fresh.root,
    }
}

/// The secrets of all keys, and the files for those that are new.
struct Secrets {
    found: Vec<(KeyUse, Secret)>,
    generated: Vec<NewFile>,
}

impl Secrets {
    fn collect(
        configuration: &Configuration,
        environment: &Environment,
        fill: Fill<'_>,
    ) -> Result<Self, CreateError> {
        let (mut found, mut generated) = (Vec::new(), Vec::new());
        for used in USES {
            let secret = match configuration.keys.secret(used) {
                KeySecret {
                    source: SecretSource::File(path),
                    generated: true,
                } => {
                    let (secret, line) = Secret::generate(&mut *fill)?;
                    generated.push(NewFile {
                        name: path.file_name().map(PathBuf::from).unwrap_or_default(),
                        bytes: Zeroizing::new(line.as_bytes().to_vec()),
                    });
                    secret
                }
                _ => Secret::find(used, configuration, environment).map_err(CreateError::Secret)?,
            };
            found.push((used, secret));
        }
        let named: Vec<(KeyUse, &Secret)> =
            found.iter().map(|(used, secret)| (*used, secret)).collect();
        // Break it: drop this test; one secret in two variables then opens the approver's key for whoever proposes
        // (`keys::creating::one_secret_in_two_places_is_still_one_secret`).
        match shared(&named) {
            None => Ok(Self { found, generated }),
            Some((first, second)) => Err(CreateError::SharedSecret { first, second }),
        }
    }
}

fn system<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> CreateError + 'a {
    move |cause| CreateError::System {
        doing,
        path: path.display().to_string(),
        cause,
    }
}

/// The folder to fill: absent or empty. A symbolic link stands for the folder it names.
fn target(directory: &Path) -> Result<PathBuf, CreateError> {
    let directory = match fs::canonicalize(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(directory.to_owned()),
        other => other.map_err(system("looking at", directory))?,
    };
    let mut first = None;
    for entry in fs::read_dir(&directory).map_err(system("looking at", &directory))? {
        let name = entry.map_err(system("looking at", &directory))?.file_name();
        let name = name.to_string_lossy().into_owned();
        if places::belongs_to_keys(&name) {
            return Err(already_there(&directory, name));
        }
        first = Some(name);
    }
    match first {
        None => Ok(directory),
        Some(found) => Err(CreateError::NotEmpty {
            directory: directory.display().to_string(),
            found,
        }),
    }
}

fn already_there(directory: &Path, found: String) -> CreateError {
    CreateError::AlreadyThere {
        directory: directory.display().to_string(),
        found,
    }
}

fn write_folder(directory: &Path, contents: &[NewFile]) -> Result<(), CreateError> {
    let parent = directory.parent().unwrap_or(Path::new("/"));
    files::make_private_folder(parent).map_err(system("making", parent))?;
    // Removed again with all that is in it unless it is put in place.
    let folder = tempfile::Builder::new()
        .prefix(".new-keys-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(system("making a folder in", parent))?;
    for file in contents {
        let path = folder.path().join(&file.name);
        files::write_private(&path, &file.bytes).map_err(system("writing", &path))?;
    }
    files::sync_folder(folder.path()).map_err(system("writing", folder.path()))?;
    // A folder is only ever renamed onto an empty one, so that of two commands at once the second fails.
    fs::rename(folder.path(), directory).map_err(|cause| match cause.kind() {
        io::ErrorKind::DirectoryNotEmpty => {
            already_there(directory, "made at the same time".to_owned())
        }
        _ => system("putting in place", directory)(cause),
    })?;
    drop(folder.keep());
    files::sync_folder(parent).map_err(system("writing", parent))
}
