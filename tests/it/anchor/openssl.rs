//! A timestamp authority made of the `openssl` program.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use caretaker::anchor::timestamp::Roots;

const CONFIGURATION: &str = "\
[authority]
serial = serial
default_policy = 1.2.3.4.1
digests = DIGESTS
signer_digest = sha256
ess_cert_id_alg = sha256
accuracy = secs:1, millisecs:500
[root]
basicConstraints = critical, CA:TRUE
[issuer]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign
[signer]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[req]
distinguished_name = name
[name]
";

/// Root, issuer and signer with keys of one kind in a temporary folder.
pub(crate) struct OpenSsl {
    folder: tempfile::TempDir,
}

impl OpenSsl {
    /// `key` is what `openssl genpkey` takes behind `-algorithm`.
    pub(crate) fn new(name: &str, key: &[&str]) -> Self {
        Self::with_digests(name, key, "sha256")
    }

    /// One that stamps only hashes of these algorithms.
    pub(crate) fn with_digests(name: &str, key: &[&str], digests: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Self { folder };
        let configuration = CONFIGURATION.replace("DIGESTS", digests);
        fs::write(made.path("conf"), configuration).unwrap();
        for who in ["root", "issuer", "signer"] {
            let mut words = vec!["genpkey", "-out", who, "-algorithm"];
            words.extend(key);
            made.run(&words);
            let subject = format!("/CN={name}{}", if who == "signer" { "" } else { who });
            let request = format!("{who}.csr");
            made.run(&[
                "req", "-config", "conf", "-new", "-key", who, "-subj", &subject, "-out", &request,
            ]);
        }
        made.run(&[
            "x509",
            "-req",
            "-in",
            "root.csr",
            "-signkey",
            "root",
            "-days",
            "10",
            "-extfile",
            "conf",
            "-extensions",
            "root",
            "-out",
            "root.pem",
        ]);
        for (who, by) in [("issuer", "root"), ("signer", "issuer")] {
            let (request, issuer) = (format!("{who}.csr"), format!("{by}.pem"));
            let out = format!("{who}.pem");
            made.run(&[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                &issuer,
                "-CAkey",
                by,
                "-CAcreateserial",
                "-days",
                "9",
                "-extfile",
                "conf",
                "-extensions",
                who,
                "-out",
                &out,
            ]);
        }
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, words: &[&str]) -> String {
        let (done, said) = self.tried(words);
        assert!(done, "openssl {}: {said}", words.join(" "));
        said
    }

    fn tried(&self, words: &[&str]) -> (bool, String) {
        let mut command = Command::new("openssl");
        let done = command.args(words).current_dir(self.folder.path()).output();
        let done = done.expect("openssl is not installed; tests/run installs it");
        let said = [done.stdout, done.stderr].concat();
        (
            done.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    /// What it answers to a query.
    pub(crate) fn reply(&self, query: &[u8]) -> Vec<u8> {
        fs::write(self.path("query"), query).unwrap();
        self.run(&[
            "ts",
            "-reply",
            "-config",
            "conf",
            "-section",
            "authority",
            "-queryfile",
            "query",
            "-signer",
            "signer.pem",
            "-inkey",
            "signer",
            "-chain",
            "issuer.pem",
            "-out",
            "reply",
        ]);
        fs::read(self.path("reply")).unwrap()
    }

    /// What it reads in a query.
    pub(crate) fn reads(&self, query: &[u8]) -> String {
        fs::write(self.path("query"), query).unwrap();
        self.run(&["ts", "-query", "-in", "query", "-text"])
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::read(&self.path("root.pem")).unwrap()
    }

    /// What a stranger types: whether `openssl` finds the receipt to be one of these bytes.
    pub(crate) fn verifies(&self, data: &[u8], receipt: &[u8]) -> bool {
        fs::write(self.path("FILE"), data).unwrap();
        fs::write(self.path("RECEIPT"), receipt).unwrap();
        let (done, said) = self.tried(&[
            "ts", "-verify", "-data", "FILE", "-in", "RECEIPT", "-CAfile", "root.pem",
        ]);
        assert_eq!(done, said.contains("Verification: OK"), "{said}");
        done
    }
}
