//! A pull request on a forge, with everything that the protocol needs to approve, compare, merge and prove it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caretaker::approve::{Authority, Binding, MergeMethod};
use caretaker::attest::predicate::{self, Base, ChangeRef, Head, Target};
use caretaker::change::{CHANGE_SET_ALGORITHM, ChangeDocument, ChangeSet, ObjectFormat, Oid};
use caretaker::clock::FixedClock;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubConnector, GithubOptions};
use caretaker::connector::{Connector as _, ConnectorError, NewPull};
use caretaker::execute::{MergeAnswer, MergeOrder, OrderError, order};
use caretaker::forge::{Ci, FileEdit, Forge, ForgeOptions, ObjectId, RepositoryHandle, start};
use caretaker::id::ExecutionId;
use caretaker::reconcile::{
    CheckRequirement, Comparison, Demands, LandedProof, Landing, LiveView, Matched, compare, prove,
};
use caretaker::workspace::TrustedRepository;
use caretaker::workspace::git_command::{GitCommand, Merged, Refspec, Remote};

use crate::attest::ledger::{Ledger, NOW, digest, label, text};

pub(super) const BRANCH: &str = "caretaker/fix";

pub(super) struct Bench {
    pub(super) forge: Forge,
    pub(super) repository: RepositoryHandle,
    pub(super) connector: GithubConnector,
    home: tempfile::TempDir,
}

pub(super) fn file(content: &str) -> FileEdit {
    FileEdit::file(content)
}

/// An edit with a mode of git's.
pub(super) fn moded(mode: u32, content: &str) -> FileEdit {
    FileEdit::Write {
        mode,
        content: content.as_bytes().to_vec(),
    }
}

pub(super) fn oid(id: &ObjectId) -> Oid {
    id.as_str().parse().unwrap()
}

impl Bench {
    /// A repository with `before`, and pull request 1 whose one commit makes these edits. Its check succeeds.
    pub(super) async fn new(before: &[(&str, FileEdit)], edits: &[(&str, FileEdit)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let forge = start(ForgeOptions::new(
            home.path().join("forge"),
            ([127, 0, 0, 1], 0).into(),
        ))
        .await
        .unwrap();
        let repository = forge.create_repository("acme", "widget", before).unwrap();
        repository.set_ci(Ci::Automatic).unwrap();
        let main = repository.tip("main").unwrap();
        repository.create_branch(BRANCH, &main).unwrap();
        let message = "Mend\n\nCaretaker-Proposal: prp-1\n";
        repository.commit(BRANCH, edits, message).unwrap();
        let connector = connector(&forge, &repository);
        let new = NewPull {
            head_ref: BRANCH.to_owned(),
            base_ref: "main".to_owned(),
            title: "Mend".to_owned(),
            body: "Because.".to_owned(),
        };
        assert_eq!(connector.open_pull(&new).await.unwrap().number, 1);
        Self {
            forge,
            repository,
            connector,
            home,
        }
    }

    /// What is approved if it is approved now: everything from our own clone, nothing from the interface.
    pub(super) async fn binding(&self, method: MergeMethod) -> Binding {
        self.fetch().await;
        let trusted = self.trusted();
        let (base, head) = (self.tip("main"), self.tip(BRANCH));
        let merge_base = trusted.merge_base(base, head).unwrap();
        let change = trusted.change_set(merge_base, head).unwrap();
        Binding {
            repository_id: self.repository.id().to_string(),
            host: self.connector.host().to_owned(),
            pull_request: 1,
            base_ref: "main".to_owned(),
            merge_base,
            head_ref: BRANCH.to_owned(),
            head_commit: head,
            head_tree: trusted.commit_tree(head).unwrap(),
            change: ChangeDocument::from(&change),
            merge_method: method,
            title: "Mend the widget".to_owned(),
            body: "It was broken.".to_owned(),
            expires_at: NOW.plus_seconds(7_200),
        }
    }

    pub(super) async fn live(&self, binding: &Binding) -> Result<LiveView, ConnectorError> {
        self.connector.live(binding).await
    }

    /// Steps 1 to 6 of the protocol.
    pub(super) async fn compared(&self, binding: &Binding) -> Comparison {
        let live = self.live(binding).await.unwrap();
        let predicted = self.predicted(binding, live.base_tip).await;
        let demands = Demands {
            required_checks: &[CheckRequirement {
                name: "test".to_owned(),
                app: Some("github-actions".to_owned()),
            }],
            allow_no_checks: false,
            predicted: predicted.as_ref(),
        };
        compare(binding, &live, &demands, NOW)
    }

    /// The rules that say no.
    pub(super) async fn blocked_by(&self, binding: &Binding) -> Vec<String> {
        match self.compared(binding).await {
            Comparison::Blocked(differences) => {
                let mut rules: Vec<String> = differences.into_iter().map(|it| it.rule).collect();
                rules.dedup();
                rules
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn matched(&self, binding: &Binding) -> Box<Matched> {
        match self.compared(binding).await {
            Comparison::Matched(matched) => matched,
            other => panic!("{other:?}"),
        }
    }

    /// Compares, and asks for the merge.
    pub(super) async fn merge(&self, binding: &Binding) -> MergeAnswer {
        let order = ordered(&*self.matched(binding).await);
        self.connector.merge(&order).await.unwrap()
    }

    pub(super) async fn landing(&self, binding: &Binding) -> Landing {
        let view = self.connector.landed(binding, &execution()).await.unwrap();
        prove(binding, &view, Some(&execution()))
    }

    /// Merges and proves that exactly what was approved landed, by us.
    pub(super) async fn lands(&self, binding: &Binding) -> LandedProof {
        let answer = self.merge(binding).await;
        let MergeAnswer::Merged(commit) = answer else {
            panic!("{answer:?}")
        };
        match self.landing(binding).await {
            Landing::Proven(proof) => {
                assert!(proof.ours);
                assert_eq!(
                    (proof.commit, proof.observed),
                    (commit, binding.change_digest())
                );
                proof
            }
            other => panic!("{other:?}"),
        }
    }

    /// How often the merge was asked for.
    pub(super) fn asked(&self) -> usize {
        asked(&self.forge)
    }

    pub(super) fn tip(&self, branch: &str) -> Oid {
        oid(&self.repository.tip(branch).unwrap())
    }

    fn trusted(&self) -> TrustedRepository {
        TrustedRepository::open_or_create(&self.home.path().join("trusted.git")).unwrap()
    }

    async fn fetch(&self) -> GitCommand {
        let path = self.trusted().path().to_path_buf();
        let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
        let git = GitCommand::new(path, launcher).unwrap();
        let remote = self
            .connector
            .git_remote(caretaker::connector::GitUse::Fetch)
            .await
            .unwrap();
        let remote = Remote::new(&remote.url, remote.token).unwrap();
        let names: Vec<Refspec> = self
            .repository
            .references()
            .unwrap()
            .into_iter()
            .map(|(name, _)| Refspec::Ref {
                from: name.parse().unwrap(),
                to: name
                    .replace("refs/heads/", "refs/remotes/origin/")
                    .parse()
                    .unwrap(),
            })
            .collect();
        git.fetch(&remote, &names).await.unwrap();
        git
    }

    /// What git says the merge would change at the base tip.
    async fn predicted(&self, binding: &Binding, tip: Oid) -> Option<ChangeSet> {
        let git = self.fetch().await;
        match git.merge_tree(&tip, &binding.head_commit).await.unwrap() {
            Merged::Tree(tree) => Some(self.trusted().change_set(tip, tree).unwrap()),
            Merged::Conflict(_) => None,
        }
    }
}

fn execution() -> ExecutionId {
    ExecutionId::new(NOW, [7; 10])
}

/// The order for what matched, on the authority of a signed approval.
pub(super) fn ordered(matched: &Matched) -> MergeOrder {
    ordered_by(matched.binding(), matched).unwrap()
}

/// The same, on the authority of an approval of whatever binding.
pub(super) fn ordered_by(binding: &Binding, matched: &Matched) -> Result<MergeOrder, OrderError> {
    order(&approved(binding), matched, &execution(), None, NOW)
}

/// How often a merge was asked for at this forge.
pub(super) fn asked(forge: &Forge) -> usize {
    let merges = |method: &str, path: &str| method == "PUT" && path.ends_with("/merge");
    let requests = forge.requests();
    requests
        .iter()
        .filter(|request| merges(&request.method, &request.path))
        .count()
}

fn connector(forge: &Forge, repository: &RepositoryHandle) -> GithubConnector {
    let options = GithubOptions {
        api_url: forge.url().to_owned(),
        web_url: forge.url().to_owned(),
        git_url: forge.url().to_owned(),
        owner: "acme".to_owned(),
        name: "widget".to_owned(),
        credential: Arc::new(PersonalToken::new(forge.token().to_owned().into())),
        expected_repository_id: Some(repository.id().to_string()),
        deadline: Duration::from_secs(30),
    };
    GithubConnector::alone(options, Arc::new(FixedClock::at(NOW))).unwrap()
}

/// A ledger in which a person approved exactly this, and the authority that it gives.
fn approved(binding: &Binding) -> Authority {
    let target = || Target::Commit {
        change: ChangeRef {
            algorithm: text(CHANGE_SET_ALGORITHM),
            object_format: ObjectFormat::Sha1,
            sha256: binding.change_digest(),
            count: binding.change.count as u64,
        },
        head: Head {
            commit: binding.head_commit,
            tree: binding.head_tree,
        },
    };
    let repository = label(&binding.repository_id);
    let mut ledger = Ledger::new();
    ledger.propose(|proposal| {
        proposal.event.project.repository_id = repository.clone();
        proposal.target = target();
        proposal.base = Base {
            branch: text(&binding.base_ref),
            commit: binding.merge_base,
        };
        proposal.title = Some(digest(&binding.title));
        proposal.body = Some(digest(&binding.body));
    });
    ledger.decide(|decision| {
        decision.event.project.repository_id = repository.clone();
        decision.target = target();
    });
    ledger.answer(|approval| {
        approval.event.project.repository_id = repository.clone();
        let bound = &mut approval.binding;
        bound.repository_id = repository.clone();
        bound.host = label(&binding.host);
        bound.pull_request = binding.pull_request;
        bound.base_ref = text(&binding.base_ref);
        bound.merge_base = binding.merge_base;
        bound.head_ref = text(&binding.head_ref);
        bound.head_commit = binding.head_commit;
        bound.head_tree = binding.head_tree;
        bound.count = binding.change.count as u64;
        bound.change = binding.change_digest().into();
        bound.merge_method = match binding.merge_method {
            MergeMethod::Merge => predicate::MergeMethod::Merge,
            MergeMethod::Squash => predicate::MergeMethod::Squash,
            MergeMethod::Rebase => predicate::MergeMethod::Rebase,
        };
        bound.title = digest(&binding.title);
        bound.body = digest(&binding.body);
        bound.expires_at = binding.expires_at;
        bound.sha256 = binding.digest();
    });
    let mut expected = ledger.expectation();
    expected.project.as_mut().unwrap().repository_id = repository;
    Authority::from_ledger(&ledger.trust, &expected, &ledger.envelopes, binding).unwrap()
}
