//! The product's own connector reads what the forge says: two readings of GitHub's interface, made apart, meet here.

use std::sync::Arc;
use std::time::Duration;

use caretaker::approve::{Binding, MergeMethod};
use caretaker::change::{ChangeDocument, ChangeSet, ObjectFormat, Oid};
use caretaker::clock::{Millis, SystemClock};
use caretaker::connector::Guarded::{Possible, Refused};
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubConnector, GithubOptions};
use caretaker::connector::{BranchProtection, Connector as _, JobLog, NewPull};
use caretaker::forge::{Forge, Plant, Protection, RepositoryHandle};
use serde_json::Value;

use super::bench::{file, forge, git};

fn connector(forge: &Forge, repository: &RepositoryHandle) -> GithubConnector {
    let options = GithubOptions {
        api_url: forge.url().to_owned(),
        web_url: forge.url().to_owned(),
        git_url: forge.url().to_owned(),
        owner: "acme".to_owned(),
        name: "percent".to_owned(),
        credential: Arc::new(PersonalToken::new(forge.token().to_owned().into())),
        expected_repository_id: Some(repository.id().to_string()),
        deadline: Duration::from_secs(20),
    };
    GithubConnector::alone(options, Arc::new(SystemClock)).unwrap()
}

/// A binding of a pull request from `caretaker/fix` into `main`, with an empty change set: the connector only reads.
fn binding(repository: &RepositoryHandle, host: &str, number: u64) -> Binding {
    let asked = |revision: &str| -> Oid {
        let output = git(repository.git_directory(), &["rev-parse", revision]);
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    Binding {
        repository_id: repository.id().to_string(),
        host: host.to_owned(),
        pull_request: number,
        base_ref: "main".to_owned(),
        merge_base: asked("main"),
        head_ref: "caretaker/fix".to_owned(),
        head_commit: asked("caretaker/fix"),
        head_tree: asked("caretaker/fix^{tree}"),
        change: ChangeDocument::from(&ChangeSet::new(ObjectFormat::Sha1, Vec::new()).unwrap()),
        merge_method: MergeMethod::Squash,
        title: "Mend".to_owned(),
        body: String::new(),
        expires_at: Millis(0),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_products_connector_understands_the_forge() {
    let folder = tempfile::tempdir().unwrap();
    let forge = forge(folder.path()).await;
    let planted = forge.plant(Plant::RedTest).unwrap();
    let repository = &planted.repository;
    let connector = connector(&forge, repository);

    let runs = connector.runs(1).await.unwrap().runs;
    assert_eq!(
        (
            runs.len(),
            runs[0].id,
            runs[0].conclusion.as_deref(),
            runs[0].own_repository
        ),
        (1, planted.run, Some("failure"), true)
    );
    let jobs = connector.jobs(planted.run, 1).await.unwrap();
    let JobLog::Text {
        bytes,
        omitted: 0,
        cut: None,
    } = connector.job_log(jobs[0].id, 100_000).await.unwrap()
    else {
        panic!("no log")
    };
    assert!(
        String::from_utf8(bytes)
            .unwrap()
            .contains("panicked at src/percent.rs:77:9")
    );

    let main = repository.tip("main").unwrap();
    repository.create_branch("caretaker/fix", &main).unwrap();
    let source =
        String::from_utf8(repository.file("main", planted.file).unwrap().unwrap()).unwrap();
    let mended = source.replace(planted.wrong, planted.right);
    let head = repository
        .commit(
            "caretaker/fix",
            &[(planted.file, file(&mended))],
            "Mend\n\nCaretaker-Proposal: 1\n",
        )
        .unwrap();
    assert_eq!(
        connector
            .branch("caretaker/fix")
            .await
            .unwrap()
            .unwrap()
            .to_string(),
        head.as_str()
    );
    assert_eq!(connector.find_pull("caretaker/fix").await.unwrap(), None);
    let new = NewPull {
        head_ref: "caretaker/fix".to_owned(),
        base_ref: "main".to_owned(),
        title: "Mend".to_owned(),
        body: "Because.".to_owned(),
    };
    let pull = connector.open_pull(&new).await.unwrap();
    assert_eq!(
        connector.find_pull("caretaker/fix").await.unwrap().as_ref(),
        Some(&pull)
    );

    let live = connector
        .live(&binding(repository, connector.host(), pull.number))
        .await
        .unwrap();
    assert_eq!(
        (live.files.len(), live.entries.count(), live.checks.len()),
        (1, 1, 1)
    );
    assert_eq!(live.head_commit_after_files.to_string(), head.as_str());
    assert_eq!(live.allowed_methods.len(), 3);

    connector
        .close_pull(pull.number, "Not needed.")
        .await
        .unwrap();
    connector.delete_branch("caretaker/fix").await.unwrap();
    assert_eq!(connector.branch("caretaker/fix").await.unwrap(), None);
    assert!(!connector.pull(pull.number).await.unwrap().open);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_protects_a_branch_is_read_from_its_rules_and_its_protection() {
    let folder = tempfile::tempdir().unwrap();
    let forge = forge(folder.path()).await;
    let repository = &forge.plant(Plant::RedTest).unwrap().repository;
    let connector = connector(&forge, repository);
    let tip = repository.tip("main").unwrap();
    let protection = async || connector.protection("log").await.unwrap();
    let told = |force_pushes, deletion| {
        Some(BranchProtection {
            force_pushes,
            deletion,
        })
    };
    assert_eq!(protection().await, None);
    repository.create_branch("log", &tip).unwrap();
    assert_eq!(protection().await, Some(BranchProtection::NONE));

    let rule = |kind| repository.add_rule("log", kind, Value::Null).unwrap();
    rule("non_fast_forward");
    // Break it: leave the rules out (`connector::github::protection::protection`).
    assert_eq!(protection().await, told(Refused, Possible));
    rule("deletion");
    assert_eq!(protection().await, told(Refused, Refused));

    repository.unprotect("log").unwrap();
    for (allow_force_pushes, allow_deletions, expected) in [
        (false, false, told(Refused, Refused)),
        (true, false, told(Possible, Refused)),
        (false, true, told(Refused, Possible)),
        (true, true, told(Possible, Possible)),
    ] {
        let protection_now = Protection {
            allow_force_pushes,
            allow_deletions,
            ..Protection::default()
        };
        repository.protect("log", protection_now).unwrap();
        assert_eq!(protection().await, expected);
    }
    rule("non_fast_forward");
    // Both features together: what one refuses is refused.
    assert_eq!(protection().await, told(Refused, Possible));
}
