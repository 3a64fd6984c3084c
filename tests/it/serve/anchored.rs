//! A merge that a timestamp authority (OpenSSL) and an auditor's witness have to hold first, both as processes and servers of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::process::Command;

use super::inbox::{hidden_fields, look, press};
use super::place::{CODER, RULES, World};
use super::process::{Ended, Process, bounded};
use crate::anchor::openssl::OpenSsl;
use crate::anchor::server::{Server, answer};

const RSA: &[&str] = &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"];

/// A witness that cosigns this installation's log; its key and its process.
async fn witness(world: &World) -> (String, String, Process) {
    let place = world.place.path("witness");
    let place = place.to_str().unwrap();
    let caretaker = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command.env_clear().args(arguments);
        command
    };
    let name = "auditor.example/witness";
    let init = ["witness", "init", "--name", name, "--dir", place];
    let made = Ended::of(caretaker(&init)).await;
    assert_eq!(made.code, Some(0), "{}", made.error);
    let keys = world.place.run(&["log", "keys"]).await;
    let log = keys.out.lines().next().unwrap();
    let mut run = vec!["witness", "run", "--dir", place, "--listen"];
    run.extend(["127.0.0.1:0", "--log", log]);
    let told = world.place.path("witness.log");
    let (process, line) = Process::start(caretaker(&run), &told).await;
    let address = line.rsplit(' ').next().unwrap().to_owned();
    (made.out.trim().to_owned(), address, process)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_an_authority_and_a_witness_have_to_hold_is_proven_to_an_auditor() {
    let demands =
        format!("{RULES}anchors: {{required: [\"timestamp:one\", \"witness:auditor\"]}}\n");
    let mut world = World::with_rules(CODER, &demands).await;
    let openssl = Arc::new(OpenSsl::new("Authority A", RSA));
    let open = Arc::new(AtomicBool::new(false));
    let (stamping, opened) = (Arc::clone(&openssl), Arc::clone(&open));
    let authority = Server::start(move |query| {
        if opened.load(Ordering::SeqCst) {
            answer("200 OK", &stamping.reply(query))
        } else {
            answer("503 Service Unavailable", b"")
        }
    })
    .await;
    let (key, address, witness) = witness(&world).await;
    let configured = std::fs::read_to_string(world.place.path("caretaker.yaml")).unwrap();
    let (url, root) = (authority.url(), openssl.path("root.pem"));
    let root = root.display();
    let anchors = format!(
        "anchor:\n  timestamps: [{{name: one, url: \"{url}\", roots: \"{root}\", every_seconds: 1}}]\n  witnesses: [{{name: auditor, url: \"{address}\", key: \"{key}\", every_seconds: 1}}]\n"
    );
    world
        .place
        .write("caretaker.yaml", &format!("{configured}{anchors}"));

    let (serving, pages) = world.serve().await;
    let asked = world.inbox.wait_for("approval-requested", &serving).await;
    let incident = asked["incident"].as_str().unwrap();
    let link = asked["approval_url"].as_str().unwrap();
    let (_, page) = look(&world.browser, link).await;
    let answered = press(&world.browser, link, hidden_fields(&page), "approve").await;
    assert_eq!(answered, 303);
    // While the authority is shut the merge waits, and `incident explain` says for whom.
    bounded("what it waits for", async {
        loop {
            let explained = world.place.run(&["incident", "explain", incident]).await;
            if explained.out.contains("timestamp one") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
    let pulls = world.forge_says("/pulls?state=open").await;
    assert_eq!(pulls.as_array().unwrap().len(), 1, "{pulls}");
    open.store(true, Ordering::SeqCst);
    world.inbox.wait_for("incident-resolved", &serving).await;
    let document = world.incident(&pages, incident, "resolved").await;
    world
        .exactly_one_is_merged(&document["execution"]["merge_commit"])
        .await;
    proven(&world, incident, &openssl, &key).await;
    let offered = format!("{pages}/incidents/{incident}/ledger.caretaker");
    let offered = world.browser.get(offered).send().await.unwrap();
    let offered = offered.bytes().await.unwrap();
    std::fs::write(world.place.path("page.caretaker"), offered).unwrap();
    let report = verified(&world, "page.caretaker", &openssl).await.json();
    assert_eq!(report["timestamps"][0]["verdict"], "valid", "{report}");
    assert_eq!(serving.terminate().await, Some(0));
    assert_eq!(witness.terminate().await, Some(0));
    assert_eq!(world.forge.terminate().await, Some(0));
}

/// What the auditor types, with the trust root, the authority's root and the witness's key in hand.
async fn proven(world: &World, incident: &str, openssl: &OpenSsl, key: &str) {
    let root = ["keys", "export-trust-root", "-o", "root.json"];
    assert_eq!(world.place.run(&root).await.code, Some(0));
    let log = world.place.run(&["log", "keys"]).await;
    let log = log.out.lines().next().unwrap();
    let policy = format!("log {log}\nwitness ours {key}\nquorum ours\n");
    world.place.write("policy.txt", &policy);
    let export = ["ledger", "export", incident, "-o", "x.caretaker"];
    // The merge waited for the approval to be held; that what landed is held, too, is a matter of the anchors' pace.
    let report = bounded("a bundle that both hold", async {
        loop {
            let exported = world.place.run(&export).await;
            assert_eq!(exported.code, Some(0), "{}", exported.error);
            let verified = verified(world, "x.caretaker", openssl).await;
            if verified.code != Some(3) {
                let report = verified.json();
                if !report["timestamps"].is_null() {
                    return report;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    })
    .await;
    assert_eq!(report["verdict"], "valid", "{report}");
    assert_eq!(report["timestamps"][0]["verdict"], "valid", "{report}");
}

/// What verifying a bundle says, with everything that the auditor holds.
async fn verified(world: &World, bundle: &str, openssl: &OpenSsl) -> Ended {
    let roots = openssl.path("root.pem");
    let mut verify = vec!["verify", bundle, "--trust-root", "root.json"];
    verify.extend(["--policy", "policy.txt", "--json", "--timestamp-roots"]);
    verify.push(roots.to_str().unwrap());
    world.place.run(&verify).await
}
