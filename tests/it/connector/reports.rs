//! Other people's public reports (`github/issue-tests.json`), each with the test that holds it here.

use std::collections::BTreeMap;

use caretaker::connector::github::GithubOptions;
use caretaker::connector::{Connector as _, JobLog};
use serde_json::{Value, json};

use super::provider::{Provider, Reply, json, with_headers};
use crate::support::corpus;

/// By number: the test that holds a report, by module and name.
const REPORTS: &[(u64, &str)] = &[
    (
        1,
        "reconcile::contents::an_executable_bit_alone_is_a_change",
    ),
    (
        2,
        "connector::listings::two_producers_agree_on_any_two_trees",
    ),
    (
        3,
        "reconcile::contents::a_submodule_that_its_own_settings_hide_is_in_the_change",
    ),
    (
        4,
        "connector::reports::report_4_a_row_without_an_object_blocks_unless_the_mode_alone_changed",
    ),
    (
        5,
        "connector::reports::report_4_a_row_without_an_object_blocks_unless_the_mode_alone_changed",
    ),
    (
        6,
        "reconcile::contents::a_rename_is_one_removal_and_one_addition",
    ),
    (
        8,
        "reconcile::listing::one_file_more_than_the_interface_lists_never_matches",
    ),
    (
        9,
        "connector::comparison::a_hundred_and_one_files_are_read_in_two_pages",
    ),
    (
        10,
        "reconcile::listing::one_file_more_than_the_interface_lists_never_matches",
    ),
    (
        12,
        "connector::reports::report_12_pages_of_an_enterprise_server_are_read_under_its_base",
    ),
    (
        13,
        "reconcile::refusals::a_modified_base_is_compared_again_and_any_other_405_stops",
    ),
    (
        14,
        "reconcile::refusals::a_conflict_although_the_head_is_the_same_is_compared_again",
    ),
    (
        15,
        "reconcile::refusals::a_conflict_that_stays_is_given_up_after_three_comparisons",
    ),
    (
        17,
        "reconcile::answers::a_head_without_the_required_check_waits",
    ),
    (
        18,
        "connector::unchanged::another_token_costs_one_answer_and_no_more",
    ),
    (20, "connector::limits::a_paused_credential_sends_nothing"),
    (
        21,
        "connector::odd::members_of_the_wrong_kind_are_as_good_as_missing",
    ),
    (
        23,
        "connector::reports::report_23_a_run_from_a_fork_is_not_ours_whatever_it_names",
    ),
    (
        24,
        "watch::hooked::lost_doubled_and_reordered_deliveries_end_in_what_polling_finds",
    ),
    (
        26,
        "connector::reports::report_26_a_log_of_fifty_megabytes_keeps_head_tail_and_errors",
    ),
    (
        28,
        "worker::acting_as_app::a_git_server_that_does_not_know_the_long_form_gets_the_short_one",
    ),
    (
        30,
        "git_command::a_missing_workflow_permission_is_recognised",
    ),
];

#[test]
fn every_report_has_its_place() {
    let Some(bytes) = corpus("github/issue-tests.json") else {
        return;
    };
    let reports: Value = serde_json::from_slice(&bytes).unwrap();
    let numbers = reports["tests"].as_array().unwrap().iter();
    let numbers: Vec<_> = numbers
        .map(|report| report["n"].as_u64().unwrap())
        .collect();
    let placed: Vec<_> = REPORTS.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, placed);
    // A test that is named exists.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for (_, place) in REPORTS {
        let (module, name) = place.rsplit_once("::").unwrap();
        let source = sources.entry(module.to_owned()).or_insert_with(|| {
            let file = root.join(format!("{}.rs", module.replace("::", "/")));
            std::fs::read_to_string(file).unwrap()
        });
        assert!(source.contains(&format!("fn {name}(")), "{place}");
    }
}

#[tokio::test]
async fn report_4_a_row_without_an_object_blocks_unless_the_mode_alone_changed() {
    use super::comparison::{after, before, blocked_by, live};
    use super::world::World;
    use caretaker::approve::MergeMethod;

    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    world.answer_instead(|world, asked| {
        let mut rows = world.rows();
        for row in &mut rows {
            // As it is reported for a change of the mode alone, and here for every row.
            row["sha"] = Value::Null;
            (row["blob_url"], row["raw_url"]) = (Value::Null, Value::Null);
        }
        (asked.tail() == "/pulls/7/files").then(|| json(200, &json!(rows)))
    });
    let view = live(&world, &binding).await.unwrap();
    assert!(view.files.iter().all(|row| row.oid.is_none()));
    assert!(!blocked_by(&binding, &view).is_empty());
}

/// Absolute links to the next page are what led others to `/api/v3/api/v3`.
#[tokio::test]
async fn report_12_pages_of_an_enterprise_server_are_read_under_its_base() {
    for doubled in [false, true] {
        let provider = Provider::start(move |asked| {
            let page: u64 = asked.query("page").unwrap().parse().unwrap();
            let base = if doubled { "/api/v3/api/v3" } else { "/api/v3" };
            let next = format!(
                "<http://ghe.example{base}/repositories/42/actions/runs/9/attempts/1/jobs?page={}>; rel=\"next\"",
                page + 1
            );
            let jobs = json!({"jobs": [{"id": page, "name": "job"}]});
            match page {
                3 => json(200, &jobs),
                _ => with_headers(200, &[("link", next.as_str())], &jobs),
            }
        })
        .await;
        let jobs = provider.connector().jobs(9, 1).await.unwrap();
        assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [1, 2, 3]);
        for (number, asked) in provider.asked().iter().enumerate() {
            let path = "/api/v3/repos/octo/widget/actions/runs/9/attempts/1/jobs";
            let page = format!("{path}?per_page=100&page={}", number + 1);
            assert_eq!(asked.target, page);
        }
    }
}

#[tokio::test]
async fn an_enterprise_server_has_its_three_addresses() {
    let provider = Provider::start(|_| {
        json(
            200,
            &json!({"id": 42, "full_name": "octo/widget", "default_branch": "main"}),
        )
    })
    .await;
    let connector = provider.made(GithubOptions {
        api_url: format!("{}/api/v3/", provider.origin),
        web_url: "https://ghe.example:8443".to_owned(),
        git_url: "https://ghe.example:8443".to_owned(),
        ..provider.options()
    });
    connector.repository().await.unwrap();
    assert_eq!(provider.asked()[0].target, "/api/v3/repositories/42");
    assert_eq!(connector.host(), "ghe.example:8443");
    let remote = connector
        .git_remote(caretaker::connector::GitUse::Fetch)
        .await;
    assert_eq!(
        remote.unwrap().url,
        "https://ghe.example:8443/octo/widget.git"
    );
}

#[tokio::test]
async fn report_23_a_run_from_a_fork_is_not_ours_whatever_it_names() {
    let run = |id: u64, head: Value, pulls: Value| {
        json!({"id": id, "workflow_id": 7, "head_sha": "a".repeat(40), "event": "push",
            "head_branch": "main", "status": "completed", "conclusion": "failure",
            "repository": {"id": 42}, "head_repository": head, "pull_requests": pulls})
    };
    let named = json!([{"number": 7, "head": {"repo": {"id": 42}}}]);
    let list = json!({"workflow_runs": [
        run(1, json!({"id": 43}), json!([])),
        run(2, json!({"id": 43}), named),
        run(3, Value::Null, json!([])),
        run(4, json!({"id": 42}), json!([])),
    ]});
    let provider = Provider::start(move |_| json(200, &list)).await;
    let runs = provider.connector().runs(1).await.unwrap().runs;
    let own: Vec<_> = runs.iter().map(|run| run.own_repository).collect();
    assert_eq!(own, [false, false, false, true]);
}

/// Five hundred thousand lines of a hundred bytes, with errors in the middle.
fn fifty_megabytes() -> Vec<u8> {
    let mut text = Vec::with_capacity(52 << 20);
    for line in 0..500_000_u32 {
        let words = match line {
            100_000 => "##[error]Process completed with exit code 101.".to_owned(),
            250_000 => "thread 'main' panicked at src/lib.rs:7:9:".to_owned(),
            _ => "x".repeat(60),
        };
        text.extend_from_slice(
            format!("2027-01-01T00:00:00.0000000Z {line:>8} {words}\r\n").as_bytes(),
        );
    }
    text
}

#[tokio::test]
async fn report_26_a_log_of_fifty_megabytes_keeps_head_tail_and_errors() {
    const CAP: usize = 1 << 20;
    let text = fifty_megabytes();
    let whole = text.len() as u64;
    assert!(whole > 49_000_000);
    let store = Provider::start(move |_| Reply::Plain(200, Vec::new(), text.clone())).await;
    let link = format!("{}/log", store.origin);
    let provider =
        Provider::start(move |_| with_headers(302, &[("location", link.as_str())], &json!({})))
            .await;
    let log = provider.connector().job_log(5, CAP).await.unwrap();
    let JobLog::Text {
        bytes,
        omitted,
        cut: None,
    } = log
    else {
        panic!("no whole log");
    };
    assert!(bytes.len() <= CAP && bytes.len() > CAP / 2);
    let kept = String::from_utf8(bytes).unwrap();
    for line in [
        0, 99_985, 100_000, 100_030, 249_990, 250_000, 250_035, 499_999,
    ] {
        assert!(kept.contains(&format!("Z {line:>8} ")), "{line}");
    }
    let marks: Vec<_> = kept
        .lines()
        .filter(|line| line.starts_with("[caretaker left out"))
        .collect();
    assert_eq!(marks.len(), 3, "{marks:?}");
    let said: u64 = marks
        .iter()
        .map(|mark| mark.split(' ').nth(3).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(said, omitted);
    let marked: usize = marks.iter().map(|mark| mark.len() + 1).sum();
    assert_eq!(kept.len() as u64 - marked as u64 + omitted, whole);
    assert!(
        kept.lines()
            .all(|line| line.len() > 40 || line.starts_with('[')),
        "whole lines"
    );
}
