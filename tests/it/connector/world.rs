//! A repository in git whose objects are served as the interface serves them. Trees, ids and differences are libgit2's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use caretaker::approve::{Binding, MergeMethod};
use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Side,
};
use git2::{Delta, Index, IndexEntry, IndexTime, Repository, Signature};
use serde_json::{Value, json};

use super::provider::{Asked, NOW, Provider, Reply, json};

/// Path to mode and content; a submodule's content is the commit it names.
pub(super) type Files = BTreeMap<String, (u32, String)>;

pub(super) fn files(list: &[(&str, u32, &str)]) -> Files {
    list.iter()
        .map(|(path, mode, content)| ((*path).to_owned(), (*mode, (*content).to_owned())))
        .collect()
}

/// What the interface says beyond git.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) base: git2::Oid,
    pub(super) head: git2::Oid,
    /// Members that replace those of the pull request.
    pub(super) pull: Value,
    /// Members that replace those of the repository.
    pub(super) repository: Value,
    pub(super) check_runs: Value,
    pub(super) statuses: Value,
    pub(super) rules: Value,
}

type Instead = Box<dyn Fn(&World, &Asked) -> Option<Reply> + Send + Sync>;

pub(super) struct World {
    git: Mutex<Repository>,
    pub(super) facts: Mutex<Facts>,
    instead: Mutex<Option<Instead>>,
    _folder: tempfile::TempDir,
}

impl World {
    /// A base with `before` and a branch `caretaker/fix` on it with `after`.
    pub(super) fn new(before: &Files, after: &Files) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init_bare(folder.path()).unwrap();
        let world = Self {
            git: Mutex::new(git),
            facts: Mutex::new(Facts {
                base: git2::Oid::ZERO_SHA1,
                head: git2::Oid::ZERO_SHA1,
                pull: json!({}),
                repository: json!({}),
                check_runs: json!([{"id": 1, "name": "test", "status": "completed",
                    "conclusion": "success", "app": {"slug": "ci"}, "check_suite": {"id": 3}}]),
                statuses: json!([]),
                rules: json!([]),
            }),
            instead: Mutex::new(None),
            _folder: folder,
        };
        let base = world.commit(before, &[], "base");
        let head = world.commit(after, &[base], "fix\n\nCaretaker-Proposal: prp-1");
        world.change(|facts| (facts.base, facts.head) = (base, head));
        Arc::new(world)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts.lock().unwrap());
    }

    pub(super) fn facts(&self) -> Facts {
        self.facts.lock().unwrap().clone()
    }

    /// Answers something else, where the closure says so.
    pub(super) fn answer_instead(
        &self,
        instead: impl Fn(&Self, &Asked) -> Option<Reply> + Send + Sync + 'static,
    ) {
        *self.instead.lock().unwrap() = Some(Box::new(instead));
    }

    pub(super) async fn serve(self: &Arc<Self>) -> Provider {
        let world = Arc::clone(self);
        Provider::start(move |asked| world.answer(asked)).await
    }

    pub(super) fn commit(&self, files: &Files, parents: &[git2::Oid], message: &str) -> git2::Oid {
        let git = self.git.lock().unwrap();
        let mut index = Index::new().unwrap();
        for (path, (mode, content)) in files {
            let id = if *mode == 0o160_000 {
                content.parse().unwrap()
            } else {
                git.blob(content.as_bytes()).unwrap()
            };
            index.add(&entry(path.as_bytes(), *mode, id)).unwrap();
        }
        let tree = git.find_tree(index.write_tree_to(&git).unwrap()).unwrap();
        let who = Signature::new("a", "a@example.com", &git2::Time::new(1, 0)).unwrap();
        let parents: Vec<_> = parents
            .iter()
            .map(|id| git.find_commit(*id).unwrap())
            .collect();
        let parents: Vec<_> = parents.iter().collect();
        git.commit(None, &who, &who, message, &tree, &parents)
            .unwrap()
    }

    /// A commit whose root tree holds one file whose name is these bytes.
    pub(super) fn commit_raw(
        &self,
        name: &[u8],
        content: &str,
        parents: &[git2::Oid],
    ) -> git2::Oid {
        let id = {
            let git = self.git.lock().unwrap();
            let blob = git.blob(content.as_bytes()).unwrap();
            let mut raw = b"100644 ".to_vec();
            raw.extend_from_slice(name);
            raw.push(0);
            raw.extend_from_slice(blob.as_bytes());
            git.odb()
                .unwrap()
                .write(git2::ObjectType::Tree, &raw)
                .unwrap()
        };
        let git = self.git.lock().unwrap();
        let tree = git.find_tree(id).unwrap();
        let who = Signature::new("a", "a@example.com", &git2::Time::new(1, 0)).unwrap();
        let parents: Vec<_> = parents
            .iter()
            .map(|id| git.find_commit(*id).unwrap())
            .collect();
        let parents: Vec<_> = parents.iter().collect();
        git.commit(None, &who, &who, "raw", &tree, &parents)
            .unwrap()
    }

    /// The change between two commits' trees, by libgit2.
    pub(super) fn change_set(&self, old: git2::Oid, new: git2::Oid) -> ChangeSet {
        let entries = self
            .deltas(old, new)
            .into_iter()
            .map(|delta| FileChange {
                path: RepoPath::from_bytes(&delta.path).unwrap(),
                old: delta.old,
                new: delta.new,
            })
            .collect();
        ChangeSet::new(ObjectFormat::Sha1, entries).unwrap()
    }

    /// What is approved when the world is as it is now.
    pub(super) fn binding(&self, method: MergeMethod) -> Binding {
        let facts = self.facts();
        let git = self.git.lock().unwrap();
        let merge_base = git.merge_base(facts.base, facts.head).unwrap();
        let head_tree = git.find_commit(facts.head).unwrap().tree_id();
        drop(git);
        Binding {
            repository_id: "42".to_owned(),
            host: "github.example".to_owned(),
            pull_request: 7,
            base_ref: "main".to_owned(),
            merge_base: oid(merge_base),
            head_ref: "caretaker/fix".to_owned(),
            head_commit: oid(facts.head),
            head_tree: oid(head_tree),
            change: ChangeDocument::from(&self.change_set(merge_base, facts.head)),
            merge_method: method,
            title: "Fix".to_owned(),
            body: "Because.".to_owned(),
            expires_at: NOW.plus_seconds(3600),
        }
    }

    fn deltas(&self, old: git2::Oid, new: git2::Oid) -> Vec<Change> {
        let git = self.git.lock().unwrap();
        let tree = |id| git.find_commit(id).unwrap().tree().unwrap();
        let mut options = git2::DiffOptions::new();
        options.include_typechange(true).ignore_submodules(false);
        let diff = git
            .diff_tree_to_tree(Some(&tree(old)), Some(&tree(new)), Some(&mut options))
            .unwrap();
        diff.deltas()
            .map(|delta| {
                let side = |file: &git2::DiffFile<'_>, absent: bool| {
                    if absent {
                        Side::absent(ObjectFormat::Sha1)
                    } else {
                        let mode = Mode::from_bits(u32::from(file.mode())).unwrap();
                        Side {
                            mode,
                            oid: oid(file.id()),
                        }
                    }
                };
                let path = delta
                    .new_file()
                    .path_bytes()
                    .or(delta.old_file().path_bytes());
                Change {
                    path: path.unwrap().to_vec(),
                    old: side(&delta.old_file(), delta.status() == Delta::Added),
                    new: side(&delta.new_file(), delta.status() == Delta::Deleted),
                }
            })
            .collect()
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let instead = self.instead.lock().unwrap();
        if let Some(reply) = instead.as_ref().and_then(|instead| instead(self, asked)) {
            return reply;
        }
        drop(instead);
        self.honest(asked)
            .unwrap_or_else(|| json(404, &json!({"message": "Not Found"})))
    }

    fn honest(&self, asked: &Asked) -> Option<Reply> {
        let facts = self.facts();
        let tail = asked.tail().to_owned();
        let body = match tail.as_str() {
            "" => merged(repository(), &facts.repository),
            "/pulls/7" => merged(self.pull(), &facts.pull),
            "/pulls/7/files" => paged(asked, self.rows(), None),
            "/git/ref/heads/main" => json!({"ref": "refs/heads/main",
                "object": {"type": "commit", "sha": facts.base.to_string()}}),
            "/rules/branches/main" => facts.rules.clone(),
            _ if tail.ends_with("/check-runs") => {
                paged(asked, list(&facts.check_runs), Some("check_runs"))
            }
            _ if tail.ends_with("/status") => json!({"statuses": facts.statuses}),
            _ => self.object(&tail)?,
        };
        Some(json(200, &body))
    }

    fn object(&self, tail: &str) -> Option<Value> {
        if let Some(both) = tail.strip_prefix("/compare/") {
            let (base, head) = both.split_once("...")?;
            let git = self.git.lock().unwrap();
            let found = git
                .merge_base(base.parse().ok()?, head.parse().ok()?)
                .ok()?;
            return Some(json!({"merge_base_commit": {"sha": found.to_string()}}));
        }
        if let Some(id) = tail.strip_prefix("/git/commits/") {
            let git = self.git.lock().unwrap();
            let commit = git.find_commit(id.parse().ok()?).ok()?;
            let parents: Vec<_> = commit
                .parent_ids()
                .map(|id| json!({"sha": id.to_string()}))
                .collect();
            return Some(
                json!({"sha": id, "tree": {"sha": commit.tree_id().to_string()},
                "parents": parents, "message": commit.message_raw().ok()?}),
            );
        }
        self.tree(tail.strip_prefix("/git/trees/")?)
    }

    pub(super) fn tree(&self, id: &str) -> Option<Value> {
        let git = self.git.lock().unwrap();
        let tree = git.find_tree(id.parse().ok()?).ok()?;
        let entries: Vec<_> = tree
            .iter()
            .map(|entry| {
                json!({"path": String::from_utf8_lossy(entry.name_bytes()),
                    "mode": format!("{:06o}", entry.filemode_raw()),
                    "sha": entry.id().to_string()})
            })
            .collect();
        Some(json!({"sha": id, "tree": entries, "truncated": false}))
    }

    fn pull(&self) -> Value {
        let facts = self.facts();
        json!({"number": 7, "state": "open", "merged": false, "draft": false, "mergeable": true,
            "commits": 1, "changed_files": self.rows().len(), "stack": null, "auto_merge": null,
            "merge_commit_sha": "f".repeat(40),
            "head": {"ref": "caretaker/fix", "sha": facts.head.to_string(), "repo": {"id": 42}},
            "base": {"ref": "main", "sha": "0".repeat(40), "repo": {"id": 42}}})
    }

    pub(super) fn rows(&self) -> Vec<Value> {
        let facts = self.facts();
        let merge_base = self.git.lock().unwrap().merge_base(facts.base, facts.head);
        let changes = merge_base.map(|base| self.deltas(base, facts.head));
        let row = |change: &Change| {
            let (status, sha) = match (change.old.mode, change.new.mode) {
                (Mode::Absent, _) => ("added", Some(change.new.oid)),
                (_, Mode::Absent) => ("removed", Some(change.old.oid)),
                _ if change.old.oid == change.new.oid => ("modified", None),
                _ => ("modified", Some(change.new.oid)),
            };
            json!({"filename": String::from_utf8_lossy(&change.path), "status": status,
                "sha": sha.map(|id| id.to_string())})
        };
        changes.unwrap_or_default().iter().map(row).collect()
    }
}

fn repository() -> Value {
    json!({"id": 42, "full_name": "octo/widget", "default_branch": "main", "archived": false,
        "allow_merge_commit": true, "allow_squash_merge": true, "allow_rebase_merge": true})
}

struct Change {
    path: Vec<u8>,
    old: Side,
    new: Side,
}

pub(super) fn oid(id: git2::Oid) -> Oid {
    Oid::from_bytes(id.as_bytes()).unwrap()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn merged(mut value: Value, instead: &Value) -> Value {
    for (name, member) in instead.as_object().unwrap() {
        value[name] = member.clone();
    }
    value
}

/// One page of a list, as the interface cuts it.
pub(super) fn paged(asked: &Asked, rows: Vec<Value>, member: Option<&str>) -> Value {
    let number = |name: &str| {
        asked
            .query(name)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let (size, page) = (
        number("per_page").unwrap_or(30),
        number("page").unwrap_or(1),
    );
    let total = rows.len();
    let rows: Vec<_> = rows
        .into_iter()
        .skip(size * (page - 1))
        .take(size)
        .collect();
    match member {
        Some(member) => json!({"total_count": total, member: rows}),
        None => json!(rows),
    }
}

fn entry(path: &[u8], mode: u32, id: git2::Oid) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.to_vec(),
    }
}

/// Whether a path is one of git's own, which an index refuses.
pub(super) fn is_plain(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|part| part.as_os_str() != ".git")
}
