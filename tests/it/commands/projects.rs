//! `caretaker project list`, `show` and `remove`: how watching goes, and what ends it.

use sqlx::Connection as _;

use super::*;

impl Desk {
    /// Writes down what the watch would have found.
    async fn watched(&self, columns: &str) {
        let file = self.home().join("caretaker.db");
        let mut raw = sqlx::AnyConnection::connect(&format!("sqlite://{}", file.display()))
            .await
            .unwrap();
        let project = &self.project.id;
        let values = format!("VALUES ('{project}', ");
        let columns = columns.replace("VALUES (", &values);
        let statement = format!("INSERT OR REPLACE INTO project_watch (project, {columns}");
        sqlx::raw_sql(statement.leak() as &'static str)
            .execute(&mut raw)
            .await
            .unwrap();
        raw.close().await.unwrap();
    }

    fn since(seconds: i64) -> i64 {
        SystemClock.now().plus_seconds(-seconds).0
    }
}

/// Without what differs from run to run, and without digits of seconds.
fn seen(ran: &Ran) -> String {
    regex::Regex::new(r"\b\d+ s ago")
        .unwrap()
        .replace_all(&ran.shown(), "[s] ago")
        .into_owned()
}

fn narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[tokio::test]
async fn a_project_that_was_never_looked_at_says_so() {
    let desk = Desk::new().await;
    let list = desk.run(&["project", "list"]);
    narrow(&list.out);
    insta::assert_snapshot!(list.out.replace(desk.project.id.as_str(), &"P".repeat(30)), @r#"
PROJECT                         STATE      LAST LOOK   LAG      REQUESTS    304  LEFT
PPPPPPPPPPPPPPPPPPPPPPPPPPPPPP  confirmed  -           -               -      -  -
  https://github.example/acme/difference -
"#);
    let show = desk.run(&["project", "show", desk.project.id.as_str()]);
    narrow(&show.out);
    insta::assert_snapshot!(show.shown(), @r#"
[0]
project      prj-…
state        confirmed
repository   https://github.example/acme/difference
number       4711
owner        local:ada
watched      ci
schedule     as configured (poll.schedule)
registered   [time]
confirmed    [time]
draft digest [digest]
rules digest [digest]
frozen       -

last look    it was not looked at yet

rules:
  denied: []

intent:
"#);
}

#[tokio::test]
async fn how_watching_goes_stands_in_one_line() {
    let desk = Desk::new().await;
    let (look, hour) = (Desk::since(12), Desk::since(1_200));
    let resets = Desk::since(-1_815);
    desk.watched(&format!(
        "next_at, looked_at, answered_at, lag, requests, unchanged, counted_from, budget) \
         VALUES ({look}, {look}, {look}, 41000, 118, 111, {hour}, '{{\"limit\":5000,\"remaining\":4882,\"resets_at\":{resets},\"of\":[]}}')"
    ))
    .await;
    let list = desk.run(&["project", "list"]);
    narrow(&list.out);
    insta::assert_snapshot!(seen(&list).replace("prj-…", &"P".repeat(30)), @r#"
[0]
PROJECT                         STATE      LAST LOOK   LAG      REQUESTS    304  LEFT
PPPPPPPPPPPPPPPPPPPPPPPPPPPPPP  confirmed  [s] ago    41 s          118   94 %  4882/5000
  https://github.example/acme/difference fine
"#);
    let show = desk.run(&["project", "show", desk.project.id.as_str()]);
    narrow(&show.out);
    insta::assert_snapshot!(seen(&show), @r#"
[0]
project      prj-…
state        confirmed
repository   https://github.example/acme/difference
number       4711
owner        local:ada
watched      ci
schedule     as configured (poll.schedule)
registered   [time]
confirmed    [time]
draft digest [digest]
rules digest [digest]
frozen       -

last look    [s] ago ([time])
last answer  [s] ago ([time])
next look    [time]
condition    fine
lag          the newest failure was 41 s old when it was seen
cost         118 requests this hour, 111 of them (94 %) answered with "not modified"
budget       4882 of 5000 requests of the credential are left, anew in 30 min

rules:
  denied: []

intent:
"#);
    let watching =
        desk.run(&["project", "list", "--json"]).json()["projects"][0]["watching"].clone();
    assert_eq!(
        (
            &watching["requests"],
            &watching["unchanged"],
            &watching["lag_ms"]
        ),
        (&118.into(), &111.into(), &41_000.into())
    );
    assert_eq!(watching["looked_at"], Millis(look).to_string());
    assert_eq!(watching["budget"]["resets_at"], Millis(resets).to_string());
    assert_eq!(watching["budget"]["remaining"], 4882);
}

#[tokio::test]
async fn what_is_wrong_with_a_repository_is_told_with_its_mend() {
    let desk = Desk::new().await;
    let (look, since) = (Desk::since(3), Desk::since(7_300));
    let project = &desk.project.id;
    desk.watched(&format!(
        "next_at, looked_at, answered_at, condition, since, detail, mend, requests, counted_from) \
         VALUES ({look}, {look}, {since}, 'credential-refused', {since}, 'reading runs: 401: Bad credentials\u{1b}[2J', \
         'make another token at the provider and run: caretaker project credential {project} --token-env VAR', 9, 0)"
    ))
    .await;
    let list = desk.run(&["project", "list"]);
    narrow(&list.out);
    insta::assert_snapshot!(seen(&list).replace("prj-…", &"P".repeat(30)), @r#"
[0]
PROJECT                         STATE      LAST LOOK   LAG      REQUESTS    304  LEFT
PPPPPPPPPPPPPPPPPPPPPPPPPPPPPP  confirmed  [s] ago     -               0      -  -
  https://github.example/acme/difference credential-refused
  since 2 h ago: reading runs: 401: Bad credentials\u{1b}[2J
  mend: make another token at the provider and run: caretaker project credential
  PPPPPPPPPPPPPPPPPPPPPPPPPPPPPP --token-env VAR
"#);
    let show = desk.run(&["project", "show", project.as_str()]);
    narrow(&show.out);
    assert!(
        show.out.contains("mend         make another token"),
        "{}",
        show.out
    );
    assert!(!show.out.contains('\u{1b}') && !list.out.contains('\u{1b}'));
    let doctor = desk.run(&["doctor", "--offline", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&doctor.out).unwrap();
    let checks = document["projects"][0]["checks"].as_array().unwrap();
    let condition = checks
        .iter()
        .find(|check| check["check"] == "condition")
        .unwrap();
    assert_eq!(condition["state"], "failed");
    assert!(
        condition["found"]
            .as_str()
            .unwrap()
            .contains("credential-refused")
    );
}

#[tokio::test]
async fn a_project_is_removed_only_when_it_is_meant() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let id = desk.project.id.as_str();
    let question = desk.run(&["project", "remove", id]);
    assert!(desk.repository().is_dir());
    insta::assert_snapshot!(question.shown(), @r#"
[1]
nothing was removed yet. Removing prj-… acme/difference:
  its credential is forgotten, and so is the clone of the repository on this machine
  it is not watched any more, and 1 open incidents are closed; their pull requests are left to you
  its history, its ledgers and its evidence stay, and the repository can be registered again
to do it: caretaker project remove prj-… --digest [digest]
       or: caretaker project remove prj-… --yes
"#);
    let wrong = desk.run(&["project", "remove", id, "--digest", &"0".repeat(64)]);
    assert!(
        wrong.code == Some(1) && wrong.error.contains("its draft has digest"),
        "{}",
        wrong.error
    );

    let digest = desk.project.draft_digest.to_string();
    let removed = desk.run(&["project", "remove", id, "--digest", &digest]);
    insta::assert_snapshot!(removed.shown(), @r#"
[0]
prj-… acme/difference is removed; 1 incidents were closed
note: a pull request may be open still: https://github.example/acme/difference/pull/7
note: revoke the token at the provider, if nothing else uses it
"#);
    assert!(!desk.repository().exists());
    let explained = desk.run(&["incident", "show", asked.id()]);
    assert!(explained.out.contains("superseded"), "{}", explained.out);
    let verified = desk.run(&["project", "list"]);
    assert!(verified.out.starts_with("no projects"), "{}", verified.out);
    let shown = desk.run(&["project", "show", id]);
    assert!(
        shown.out.contains("removed      20") && shown.out.contains("project-removed"),
        "{}",
        shown.out
    );
    let again = desk.run(&["project", "remove", id, "--yes"]);
    assert!(
        again.code == Some(1) && again.error.contains("it was removed at"),
        "{}",
        again.error
    );
}

#[tokio::test]
async fn nothing_outside_the_home_is_deleted() {
    let desk = Desk::new().await;
    let outside = desk.folder.path().join("outside");
    let folder = desk.repository();
    let name = folder.file_name().unwrap().to_owned();
    std::fs::rename(folder.parent().unwrap(), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, folder.parent().unwrap()).unwrap();
    let removed = desk.run(&["project", "remove", desk.project.id.as_str(), "--yes"]);
    assert_eq!(removed.code, Some(0), "{}", removed.error);
    assert!(
        removed.out.contains("was not deleted: it really lies at"),
        "{}",
        removed.out
    );
    assert!(outside.join(name).is_dir());
}
