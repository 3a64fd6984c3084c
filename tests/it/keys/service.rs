//! A role's key in a process of its own.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::{Role, SignError, authenticate};
use caretaker::clock::FixedClock;
use caretaker::signer::SigningService;
use tokio_util::sync::CancellationToken;

use super::succession::drafted;
use super::{Home, NOW};

/// The number of the user that runs the tests.
fn user() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid()
}

/// The variable that says where a role's signer answers.
fn place(role: Role, socket: &Path) -> (String, String) {
    let role = role.name().to_uppercase();
    (
        format!("CARETAKER_KEYS__ROLES__{role}__SIGNER__SOCKET"),
        socket.display().to_string(),
    )
}

/// One role's key with its signer, and a worker that has the trust root and the other keys only.
struct Apart {
    role: Role,
    signer: Home,
    worker: Home,
    socket: PathBuf,
    stop: CancellationToken,
}

impl Apart {
    fn new(users: Vec<u32>) -> Self {
        Self::of(Role::Executor, users)
    }

    fn of(role: Role, users: Vec<u32>) -> Self {
        let apart = Self::unanswered(role);
        let service = SigningService::open(
            role,
            &apart.signer.configuration(),
            &apart.signer.environment(),
            users,
            Box::new(FixedClock::at(NOW)),
        );
        let listener = tokio::net::UnixListener::bind(&apart.socket).unwrap();
        tokio::spawn(Arc::new(service.unwrap()).serve(listener, apart.stop.clone()));
        apart
    }

    fn unanswered(role: Role) -> Self {
        let signer = Home::made("apart");
        let socket = signer.folder.path().join("signer.sock");
        let mut worker = Home::new();
        std::fs::create_dir_all(worker.keys()).unwrap();
        for entry in std::fs::read_dir(signer.keys()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.starts_with(role.name()) {
                worker.put(&name, signer.read(&name));
            }
        }
        worker.variables.push(place(role, &socket));
        Self {
            role,
            signer,
            worker,
            socket,
            stop: CancellationToken::new(),
        }
    }

    /// Asks for a signature of a statement, whoever should have asked.
    fn ask(&self, statement: &[u8]) -> String {
        let request =
            serde_json::json!({"v": 1, "statement": STANDARD.encode(statement), "before": []});
        let request = request.to_string();
        self.raw(u32::try_from(request.len()).unwrap(), request.as_bytes())
    }

    /// Sends bytes as they are and reads what comes back.
    fn raw(&self, length: u32, body: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(&length.to_be_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(answer.get(4..).unwrap_or_default()).into_owned()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_signs_through_a_process_that_alone_has_the_key() {
    let apart = Apart::new(vec![user()]);
    let keyring = apart.worker.open().unwrap();
    keyring.allow_acting(NOW).unwrap();
    let signer = keyring.signer(Role::Executor);
    let one = drafted(keyring.trust(), NOW, "one");
    let envelope = signer.sign_after(&one, &[]).unwrap();
    authenticate(keyring.history(), &envelope).unwrap();
    // Its memory is its own: another worker's database is not believed.
    let refused = signer.sign_after(&drafted(keyring.trust(), NOW, "other"), &[]);
    let refused = refused.unwrap_err();
    assert!(matches!(refused, SignError::Elsewhere { .. }), "{refused}");
    assert!(
        apart
            .signer
            .folder
            .path()
            .join("home/signed/executor")
            .exists()
    );
    // Nor is a chain that does not verify.
    let broken = signer.sign_after(&one, &[b"{}".to_vec()]).unwrap_err();
    insta::assert_snapshot!(apart.signer.tidy(&broken.to_string()), @"the executor signer refuses: no verifier would count its signature on this statement (envelope: expected the stored form of an envelope, found event 0: reading an envelope: not the expected document: missing field `payload` at line 1 column 2)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_is_not_answered() {
    let apart = Apart::new(vec![user() + 1]);
    let refused = apart.worker.open().unwrap_err().to_string();
    let refused = apart.signer.tidy(&refused);
    insta::assert_snapshot!(refused.replace(&user().to_string(), "[uid]"), @"asking the executor's signer: the executor signer cannot be reached: …/signer.sock: user [uid] may not use this signer; name them with --allow-uid; see that `caretaker signer --role executor` runs there and lets this user in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_is_not_taken_for_another_at_either_end() {
    // The worker asks at the wrong socket.
    let mut apart = Apart::of(Role::Policy, vec![user()]);
    let wrong = place(Role::Executor, &apart.socket);
    apart.worker.variables.push(wrong);
    let refused = apart.worker.open().unwrap_err().to_string();
    insta::assert_snapshot!(apart.signer.tidy(&refused), @"asking the executor's signer: the executor signer cannot be reached: …/signer.sock: the policy's signer answers there; see that `caretaker signer --role executor` runs there and lets this user in");
    // A worker that somebody took over asks the policy's signer for what the executor has to say, and the other way round.
    let trust = apart.signer.newest();
    let one = drafted(&trust, NOW, "one");
    let answer = apart.ask(&one);
    assert!(
        answer.contains("the policy signer refuses a") && answer.contains(r#""envelope":null"#),
        "{answer}"
    );
    let said = String::from_utf8(one).unwrap();
    let renamed = said.replace(r#""role":"executor""#, r#""role":"policy""#);
    assert_ne!(said, renamed);
    let answer = apart.ask(renamed.as_bytes());
    assert!(answer.contains(r#""envelope":null"#), "{answer}");
    let memory = apart.signer.folder.path().join("home/signed/policy");
    assert!(!memory.exists());
    let right = Apart::new(vec![user()]);
    let answer = right.ask(said.as_bytes());
    assert!(answer.contains(r#""refused":null"#), "{answer}");
    assert_eq!(apart.role, Role::Policy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_is_refused_and_the_next_one_is_answered() {
    let apart = Apart::new(vec![user()]);
    assert!(apart.raw(5 << 20, b"").contains("a request has at most"));
    for body in [
        &b"nonsense"[..],
        b"[]",
        br#"{"v":1,"statement":"!","before":[]}"#,
        br#"{"v":2,"statement":null,"before":[]}"#,
        br#"{"v":1,"statement":null,"before":[],"more":1}"#,
    ] {
        let length = u32::try_from(body.len()).unwrap();
        assert!(apart.raw(length, body).contains("no request"), "{body:?}");
    }
    // Cut off, and gone.
    let mut stream = UnixStream::connect(&apart.socket).unwrap();
    stream.write_all(&[0, 0, 1, 0, b'{']).unwrap();
    drop(stream);
    apart.worker.open().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_without_end_is_answered_so_often_only() {
    let apart = Apart::new(vec![user()]);
    let keyring = apart.worker.open().unwrap();
    let signer = keyring.signer(Role::Executor);
    let one = drafted(keyring.trust(), NOW, "one");
    for _ in 0..50 {
        signer.sign_after(&one, &[]).unwrap();
    }
    let refused = signer.sign_after(&one, &[]).unwrap_err().to_string();
    assert!(
        refused.contains("more than 50 signatures a second"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_signer_nothing_is_opened() {
    let apart = Apart::unanswered(Role::Executor);
    let refused = apart.worker.open().unwrap_err().to_string();
    insta::assert_snapshot!(apart.signer.tidy(&refused), @"asking the executor's signer: the executor signer cannot be reached: …/signer.sock: No such file or directory (os error 2); see that `caretaker signer --role executor` runs there and lets this user in");
}

/// Somebody who took the socket's place hands out a signature of something else.
#[test]
fn an_answer_that_is_no_signature_is_refused() {
    let apart = Apart::unanswered(Role::Executor);
    let keys = apart.signer.open().unwrap();
    let signer = keys.signer(Role::Executor);
    let other = signer.sign(&drafted(keys.trust(), NOW, "other")).unwrap();
    let public = String::from(signer.public_key().clone());
    let answer = |envelope: Option<String>| serde_json::json!({"v": 1, "role": "executor", "public": public, "envelope": envelope, "refused": null});
    let answers = [
        answer(None),
        answer(Some(STANDARD.encode(other.to_bytes().unwrap()))),
    ];
    let listener = UnixListener::bind(&apart.socket).unwrap();
    let fake = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut request = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut request).unwrap();
            let body = answer.to_string();
            let length = u32::try_from(body.len()).unwrap();
            stream.write_all(&length.to_be_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
    });
    let keyring = apart.worker.open().unwrap();
    let one = drafted(keyring.trust(), NOW, "one");
    let refused = keyring.signer(Role::Executor).sign_after(&one, &[]);
    fake.join().unwrap();
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("no signature of this statement"),
        "{refused}"
    );
}
