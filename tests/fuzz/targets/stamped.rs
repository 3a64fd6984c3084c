//! What timestamp authorities answer, and the certificates that an auditor holds. The answer in `tests/vectors/timestamp` was made with
//! `openssl ts -reply` (ECDSA P-256, root and issuer).

use caretaker::anchor::timestamp::Roots;
use caretaker::audit::TimestampRoots as _;
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;

use super::{Target, words};

const RESPONSE: &[u8] = include_bytes!("../../vectors/timestamp/response.tsr");
const ROOT: &[u8] = include_bytes!("../../vectors/timestamp/root.pem");
/// What is stamped, and when.
const DATA: &[u8] = b"caretaker/example\n9\nroot\n";
const AT: Millis = Millis(1_796_130_571_000);

pub(super) fn targets() -> Vec<Target> {
    vec![response(), certificates()]
}

/// Whatever is taken says what the authority said.
fn response() -> Target {
    let roots = Roots::parse(ROOT);
    Target::new("timestamp", vec![RESPONSE.to_vec()], move |bytes| {
        let roots = roots.as_ref().map_err(words)?;
        let stamped = roots.verify(bytes, &Sha256Digest::of(DATA))?;
        assert_eq!(stamped.at, AT, "nobody said this");
        Ok(())
    })
}

fn certificates() -> Target {
    Target::new("certificates", vec![ROOT.to_vec()], |bytes| {
        Roots::parse(bytes).map(|_| ())
    })
}
