//! Other people's libraries read our envelopes. Needs a Python with them, named by `CARETAKER_INTEROP_PYTHON`
//! (`pip install 'securesystemslib[crypto]' in-toto-attestation`); without one nothing is tried.

use std::process::Command;

use caretaker::attest::dsse::IN_TOTO;
use caretaker::attest::{FileSigner, Role, Signer as _, exports};

use super::examples::examples;
use super::ledger::{Ledger, forge, key, seed};

#[test]
fn other_libraries_verify_every_kind_and_every_export() {
    let Some(python) = std::env::var_os("CARETAKER_INTEROP_PYTHON") else {
        return;
    };
    let ledger = Ledger::merged();
    let exports = exports(&ledger.trust, &ledger.expectation(), &ledger.envelopes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for role in Role::ALL {
        let own = examples().into_iter().filter(|one| one.role() == role);
        let own = own.map(|one| forge(IN_TOTO, &one.draft().unwrap(), &seed(role)));
        let signer = FileSigner::new(role, key(role));
        let foreign = exports.iter().filter(|export| export.role() == role);
        let foreign = foreign.map(|export| {
            let envelope = signer.sign_export(export).unwrap();
            envelope.to_bytes().unwrap()
        });
        let mut command = Command::new(&python);
        command
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/interop/envelopes.py"
            ))
            .arg(String::from(key(role).public()));
        let mut count = 0;
        for (number, envelope) in own.chain(foreign).enumerate() {
            let path = folder.path().join(format!("{role}-{number}.json"));
            std::fs::write(&path, envelope).unwrap();
            command.arg(path);
            count = number + 1;
        }
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && told.ends_with(&format!("{count} envelopes read\n")),
            "{role}: {told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
