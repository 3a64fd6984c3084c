//! Workflow runs, attempts, jobs, logs, checks and statuses.

use caretaker::forge::{Ci, NewCheckRun, NewJob, NewRun, NewStep, ObjectId, Origin};
use serde_json::{Value, json};

use super::bench::{Bench, file};

pub(crate) fn job(name: &str, conclusion: Option<&str>, log: Option<&str>) -> NewJob {
    let conclusion = conclusion.map(str::to_owned);
    let steps = vec![NewStep {
        name: "Run tests".to_owned(),
        conclusion: conclusion.clone(),
    }];
    NewJob {
        name: name.to_owned(),
        conclusion,
        steps,
        log: log.map(|log| log.as_bytes().to_vec()),
    }
}

pub(crate) fn run(
    head_sha: ObjectId,
    branch: Option<&str>,
    conclusion: Option<&str>,
    jobs: Vec<NewJob>,
) -> NewRun {
    NewRun {
        workflow: "CI".to_owned(),
        workflow_id: 501,
        workflow_path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        branch: branch.map(str::to_owned),
        head_sha,
        status: if conclusion.is_some() {
            "completed"
        } else {
            "in_progress"
        }
        .to_owned(),
        conclusion: conclusion.map(str::to_owned),
        jobs,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_keeps_the_id_and_gets_another_attempt() {
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    let jobs = vec![
        job("lint", Some("success"), Some("fine\n")),
        job("test", Some("failure"), Some("red\n")),
    ];
    let id = bench
        .repository
        .add_run(run(tip, Some("main"), Some("failure"), jobs))
        .unwrap();
    let path = format!("/actions/runs/{id}");
    let first = bench.get(&path).await.body;
    assert_eq!(
        (&first["run_attempt"], &first["conclusion"], &first["name"]),
        (&json!(1), &json!("failure"), &json!("CI"))
    );
    assert_eq!(first["head_commit"]["message"], "First commit");
    let before = bench.get(&format!("{path}/jobs")).await.body;
    assert_eq!(
        bench
            .post(&format!("{path}/rerun-failed-jobs"), json!({}))
            .await
            .status,
        201
    );
    assert_eq!(
        bench
            .post(&format!("{path}/rerun-failed-jobs"), json!({}))
            .await
            .status,
        403,
        "it is running"
    );

    let second = bench.get(&path).await.body;
    assert_eq!(
        (&second["id"], &second["run_attempt"], &second["status"]),
        (&json!(id), &json!(2), &json!("queued"))
    );
    assert_eq!(
        (&second["conclusion"], &second["created_at"]),
        (&json!(null), &first["created_at"])
    );
    assert_ne!(second["run_started_at"], first["run_started_at"]);
    let after = bench.get(&format!("{path}/jobs")).await.body;
    assert_eq!(after["total_count"], 2);
    assert_ne!(
        after["jobs"][1]["id"], before["jobs"][1]["id"],
        "another attempt, other job ids"
    );
    assert_eq!(
        (&after["jobs"][0]["conclusion"], &after["jobs"][1]["status"]),
        (&json!("success"), &json!("queued"))
    );
    assert_eq!(
        bench.get(&format!("{path}/jobs?filter=all")).await.body["total_count"],
        4
    );
    assert_eq!(
        bench.get(&format!("{path}/attempts/1/jobs")).await.body,
        before
    );
    assert_eq!(
        bench.get(&format!("{path}/attempts/1")).await.body["conclusion"],
        "failure"
    );
    assert_eq!(bench.get(&format!("{path}/attempts/3")).await.status, 404);

    bench
        .repository
        .complete_run(
            id,
            "success",
            vec![job("test", Some("success"), Some("green\n"))],
        )
        .unwrap();
    assert_eq!(bench.get(&path).await.body["conclusion"], "success");
    assert_eq!(
        bench.get(&format!("{path}/jobs")).await.body["jobs"][1]["id"],
        after["jobs"][1]["id"]
    );
    assert_eq!(bench.repository.rerun(id).unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_come_newest_first_and_filter() {
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    let add = |branch: Option<&str>, conclusion: Option<&str>| {
        bench
            .repository
            .add_run(run(tip.clone(), branch, conclusion, vec![]))
            .unwrap()
    };
    let (one, two) = (
        add(Some("main"), Some("failure")),
        add(Some("fix"), Some("success")),
    );
    // A scheduled run without a branch, and a commit that is not there any more.
    let three = add(None, None);
    let lost = bench
        .repository
        .add_run(NewRun {
            event: "schedule".to_owned(),
            ..run(
                ObjectId::parse(&"9".repeat(40)).unwrap(),
                None,
                Some("startup_failure"),
                vec![],
            )
        })
        .unwrap();
    let ids = async |query: &str| {
        let body = bench.get(&format!("/actions/runs?{query}")).await.body;
        let ids: Vec<u64> = body["workflow_runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_u64().unwrap())
            .collect();
        ids
    };
    assert_eq!(ids("").await, [lost, three, two, one]);
    assert_eq!(ids("per_page=2&page=2").await, [two, one]);
    assert_eq!(ids("branch=main").await, [one]);
    assert_eq!(ids("event=schedule").await, [lost]);
    assert_eq!(ids("status=success").await, [two]);
    assert_eq!(ids("status=in_progress").await, [three]);
    assert_eq!(ids(&format!("head_sha={}", "9".repeat(40))).await, [lost]);
    let body = bench.get("/actions/workflows/ci.yml/runs").await.body;
    assert_eq!(body["total_count"], 4);
    let odd = bench.get(&format!("/actions/runs/{lost}")).await.body;
    assert_eq!(
        (&odd["head_commit"], &odd["head_branch"]),
        (&json!(null), &json!(null))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_a_link_to_an_origin_that_wants_no_token() {
    // Break the check of the Authorization header in server/logs.rs to see this fail.
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    let log = "\u{feff}2026-01-05T08:00:30.0000000Z it failed\n";
    let jobs = vec![
        job("test", Some("failure"), Some(log)),
        job("later", None, None),
    ];
    let id = bench
        .repository
        .add_run(run(tip, Some("main"), Some("failure"), jobs))
        .unwrap();
    let jobs = bench.get(&format!("/actions/runs/{id}/jobs")).await.body["jobs"].clone();
    let path = format!("/actions/jobs/{}", jobs[0]["id"]);
    assert_eq!(bench.get(&path).await.body, jobs[0]);
    let redirect = bench.get(&format!("{path}/logs")).await;
    assert_eq!((redirect.status, &redirect.body), (302, &Value::Null));
    let link = redirect.header("location").to_owned();
    assert!(
        link.starts_with(bench.forge.logs_url()) && bench.forge.logs_url() != bench.forge.url()
    );
    let betrayed = bench
        .client
        .get(&link)
        .bearer_auth(bench.forge.token())
        .send()
        .await
        .unwrap();
    assert_eq!(betrayed.status(), 403);
    let fetched = bench.client.get(&link).send().await.unwrap();
    assert_eq!(
        (
            fetched.status().as_u16(),
            fetched.text().await.unwrap().as_str()
        ),
        (200, log)
    );
    assert!(
        bench
            .forge
            .requests()
            .iter()
            .any(|record| record.origin == Origin::Logs && record.authorized)
    );
    bench.forge.expire_log_links();
    assert_eq!(bench.client.get(&link).send().await.unwrap().status(), 403);
    assert_eq!(
        bench
            .client
            .get(format!("{}/logs/1/1", bench.forge.logs_url()))
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
    assert_eq!(
        bench
            .get(&format!("/actions/jobs/{}/logs", jobs[1]["id"]))
            .await
            .status,
        404,
        "not ended yet"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn anybody_can_name_a_check_test_but_only_one_app_is_actions() {
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    let check = |app_id: u64, app_slug: &str, conclusion: Option<&str>| NewCheckRun {
        sha: tip.clone(),
        name: "test".to_owned(),
        app_id,
        app_slug: app_slug.to_owned(),
        status: if conclusion.is_some() {
            "completed"
        } else {
            "in_progress"
        }
        .to_owned(),
        conclusion: conclusion.map(str::to_owned),
    };
    bench
        .repository
        .add_check_run(check(666, "impostor", Some("success")))
        .unwrap();
    let pending = bench
        .repository
        .add_check_run(check(15_368, "github-actions", None))
        .unwrap();
    let list = bench.get("/commits/main/check-runs").await.body;
    assert_eq!(list["total_count"], 2);
    assert_eq!(
        (
            &list["check_runs"][0]["app"]["slug"],
            &list["check_runs"][0]["app"]["id"]
        ),
        (&json!("impostor"), &json!(666))
    );
    let own = bench
        .get("/commits/main/check-runs?app_id=15368&check_name=test")
        .await
        .body;
    assert_eq!(
        (
            &own["check_runs"][0]["status"],
            &own["check_runs"][0]["conclusion"]
        ),
        (&json!("in_progress"), &json!(null))
    );
    bench
        .repository
        .complete_check_run(pending, "failure")
        .unwrap();
    assert_eq!(
        bench.get(&format!("/check-runs/{pending}")).await.body["conclusion"],
        "failure"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_check_runs_as_well_and_of_two_attempts_the_newer_counts() {
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    let id = bench
        .repository
        .add_run(run(
            tip.clone(),
            Some("main"),
            Some("failure"),
            vec![job("build", Some("failure"), None)],
        ))
        .unwrap();
    bench.repository.rerun(id).unwrap();
    bench
        .repository
        .complete_run(id, "success", vec![])
        .unwrap();
    let builds = async |filter: &str| {
        bench
            .get(&format!(
                "/commits/{tip}/check-runs?check_name=build{filter}"
            ))
            .await
            .body
    };
    assert_eq!(
        (
            &builds("").await["total_count"],
            &builds("").await["check_runs"][0]["conclusion"]
        ),
        (&json!(1), &json!("success"))
    );
    assert_eq!(builds("&filter=all").await["total_count"], 2);
    assert_eq!(bench.get("/commits/gone/check-runs").await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_status_at_all_is_pending_not_green() {
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    let state = async || {
        bench.get("/commits/main/status").await.body["state"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(state().await, "pending");
    let post = async |body: Value| bench.post(&format!("/statuses/{tip}"), body).await.status;
    assert_eq!(
        post(json!({"state": "success", "context": "ci"})).await,
        201
    );
    assert_eq!(state().await, "success");
    bench.repository.add_status(&tip, "other", "error").unwrap();
    assert_eq!(state().await, "failure");
    // The newest of a context counts.
    bench
        .repository
        .add_status(&tip, "other", "success")
        .unwrap();
    assert_eq!(state().await, "success");
    assert_eq!(post(json!({"state": "green"})).await, 422);
    assert_eq!(
        bench
            .post(
                &format!("/statuses/{}", "9".repeat(40)),
                json!({"state": "success"})
            )
            .await
            .status,
        422
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn automatic_ci_makes_heads_of_pull_requests_green() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    bench.pull("fix").await;
    let checks = async || bench.get("/commits/fix/check-runs").await.body["check_runs"].clone();
    assert_eq!(checks().await, json!([]));
    bench.repository.set_ci(Ci::Automatic).unwrap();
    bench
        .repository
        .commit("fix", &[("d.txt", file("d\n"))], "More")
        .unwrap();
    let made = checks().await;
    assert_eq!(
        (
            &made[0]["name"],
            &made[0]["app"]["id"],
            &made[0]["conclusion"]
        ),
        (&json!("test"), &json!(15_368), &json!("success"))
    );
    bench.branch("other", &[("e.txt", file("e\n"))]);
    assert_eq!(
        bench.get("/commits/other/check-runs").await.body["total_count"],
        0,
        "no pull request yet"
    );
    bench.pull("other").await;
    assert_eq!(
        bench.get("/commits/other/check-runs").await.body["total_count"],
        1
    );
}
