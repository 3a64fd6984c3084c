//! Tokens over the life of a process: how often they are made, when they are replaced, and where they never show.

use caretaker::connector::ConnectorError;
use caretaker::connector::github::credential::{CredentialIdentity, PersonalToken};

use super::provider::Provider;
use super::*;

/// As many callers at once, all of which are under way before the provider answers the first.
async fn at_once(bench: &Bench, callers: usize) -> Vec<Result<IssuedToken, TokenError>> {
    let held = bench.mint.gate.acquire().await.unwrap();
    let calls: Vec<_> = (0..callers)
        .map(|_| {
            let source = bench.source();
            tokio::spawn(async move { source.token(Use::Read, NOTHING).await })
        })
        .collect();
    // On one thread every task has run up to its wait when this goes on.
    tokio::task::yield_now().await;
    drop(held);
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap());
    }
    outcomes
}

#[tokio::test]
async fn twenty_callers_at_once_cost_one_minting() {
    let bench = Bench::new();
    let outcomes = at_once(&bench, 20).await;
    assert_eq!(bench.mint.count(), 1);
    let first = outcomes[0].as_ref().unwrap().fingerprint.clone();
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.as_ref().unwrap().fingerprint == first)
    );
    assert_eq!(bench.told(), [("token-issued", first)]);
}

#[tokio::test]
async fn those_who_waited_for_a_minting_that_failed_share_its_failure() {
    let bench = Bench::new();
    bench.mint.fail_with(Some(away()));
    let outcomes = at_once(&bench, 20).await;
    assert_eq!(bench.mint.count(), 1, "nobody asks again at once");
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.as_ref().unwrap_err() == &away())
    );
    bench.mint.fail_with(None);
    bench.token(Use::Read).await;
    assert_eq!(bench.mint.count(), 2, "whoever comes later does");
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_others_their_token() {
    let bench = Bench::new();
    let held = bench.mint.gate.acquire().await.unwrap();
    let source = bench.source();
    let impatient = tokio::spawn(async move { source.token(Use::Read, NOTHING).await });
    let source = bench.source();
    let patient = tokio::spawn(async move { source.token(Use::Read, NOTHING).await });
    tokio::task::yield_now().await;
    impatient.abort();
    drop(held);
    assert!(impatient.await.unwrap_err().is_cancelled());
    patient.await.unwrap().unwrap();
}

#[tokio::test]
async fn each_use_gets_a_token_of_its_own_with_its_own_permissions() {
    let bench = Bench::new();
    let mut fingerprints = Vec::new();
    for task in Use::ALL {
        fingerprints.push(bench.token(task).await.fingerprint);
    }
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 3);
    let orders = bench.mint.orders.lock().unwrap();
    let lines: Vec<String> = orders
        .iter()
        .map(|order| {
            assert_eq!(
                (order.installation, order.repository.clone()),
                (INSTALLATION, Target::Number(REPOSITORY))
            );
            format!("{}: {}", order.task.role(), order.permissions)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    poller: actions: read, checks: read, contents: read, metadata: read, pull_requests: read, statuses: read
    proposer: actions: write, contents: write, metadata: read, pull_requests: write
    executor: contents: write, metadata: read, pull_requests: read
    ");
}

#[tokio::test]
async fn failed_jobs_are_run_again_only_where_the_installation_lets_us() {
    let bench = Bench::new();
    *bench.mint.granted.lock().unwrap() = Permissions::of(&[("actions", Level::Read)]);
    bench.token(Use::Propose).await;
    let orders = bench.mint.orders.lock().unwrap();
    assert_eq!(
        orders[0].permissions.to_string(),
        "contents: write, metadata: read, pull_requests: write"
    );
}

#[tokio::test]
async fn repositories_and_installations_do_not_share_tokens() {
    let bench = Bench::new();
    let one = bench.token(Use::Read).await;
    let same = bench.tokens.of(INSTALLATION, Target::Number(REPOSITORY));
    let same = same.token(Use::Read, NOTHING).await.unwrap();
    assert_eq!(one.fingerprint, same.fingerprint, "handles share");
    for (installation, repository) in [(INSTALLATION, 43), (78, REPOSITORY)] {
        let other = bench.tokens.of(installation, Target::Number(repository));
        let other = other.token(Use::Read, NOTHING).await.unwrap();
        assert_ne!(one.fingerprint, other.fingerprint);
    }
    assert_eq!(bench.mint.count(), 3);
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end_and_sooner_for_long_work() {
    let bench = Bench::new();
    let first = bench.token(Use::Read).await;
    bench.clock.advance_millis(minutes(44));
    assert_eq!(bench.token(Use::Read).await.fingerprint, first.fingerprint);
    bench.clock.advance_millis(minutes(2));
    assert_eq!(
        bench.token(Use::Read).await.fingerprint,
        first.fingerprint,
        "fourteen minutes are enough for a call"
    );
    let for_git = bench.source().token(Use::Read, QUARTER).await.unwrap();
    assert_ne!(for_git.fingerprint, first.fingerprint, "but not for git");
    assert_eq!(
        bench.token(Use::Read).await.fingerprint,
        for_git.fingerprint
    );
    bench.clock.advance_millis(minutes(56));
    let third = bench.token(Use::Read).await;
    assert_ne!(
        third.fingerprint, for_git.fingerprint,
        "less than five minutes"
    );
    assert_eq!(
        bench.told(),
        [
            ("token-issued", first.fingerprint.clone()),
            ("token-expired", first.fingerprint),
            ("token-issued", for_git.fingerprint.clone()),
            ("token-expired", for_git.fingerprint),
            ("token-issued", third.fingerprint),
        ]
    );
}

/// An agent works for longer than a token lasts.
#[tokio::test]
async fn a_session_of_sixty_one_minutes_still_pushes() {
    let clock = Arc::new(FixedClock::at(NOW));
    let provider = Provider::start(Arc::clone(&clock)).await;
    let (sink, _) = keeping();
    let tokens = AppTokens::new(
        Arc::new(provider.interface()),
        Arc::clone(&clock) as Arc<_>,
        sink,
    );
    let source = tokens.of(INSTALLATION, Target::Number(REPOSITORY));
    let before = source.token(Use::Propose, QUARTER).await.unwrap();
    assert!(provider.takes(&before).await);
    clock.advance_millis(minutes(61));
    assert!(!provider.takes(&before).await, "it has ended");
    let now = source.token(Use::Propose, QUARTER).await.unwrap();
    assert!(provider.takes(&now).await);
    clock.advance_millis(minutes(15));
    assert!(provider.takes(&now).await, "a long push is not cut off");
}

#[tokio::test]
async fn while_the_provider_is_away_the_old_token_serves_to_its_end() {
    let bench = Bench::new();
    let first = bench.token(Use::Read).await;
    bench.clock.advance_millis(minutes(57));
    bench.mint.fail_with(Some(away()));
    assert_eq!(bench.token(Use::Read).await.fingerprint, first.fingerprint);
    let long = bench.source().token(Use::Read, QUARTER).await;
    assert_eq!(long.unwrap_err(), away(), "three minutes are not fifteen");
    bench.clock.advance_millis(minutes(4));
    let ended = bench.source().token(Use::Read, NOTHING).await;
    assert_eq!(ended.unwrap_err(), away());
}

/// Break it: give those who waited for the minting its error alone.
#[tokio::test]
async fn while_the_provider_is_away_those_who_waited_get_the_old_token_too() {
    let bench = Bench::new();
    let first = bench.token(Use::Read).await;
    bench.clock.advance_millis(minutes(57));
    bench.mint.fail_with(Some(away()));
    for outcome in at_once(&bench, 20).await {
        assert_eq!(outcome.unwrap().fingerprint, first.fingerprint);
    }
    assert_eq!(bench.mint.count(), 2, "nobody asks again at once");
}

#[tokio::test]
async fn a_token_that_the_provider_refuses_is_replaced_once() {
    let bench = Bench::new();
    let source = bench.source();
    let first = bench.token(Use::Read).await;
    let other = bench.token(Use::Execute).await;
    assert!(source.refused(&first).await, "another one can be had");
    let second = bench.token(Use::Read).await;
    assert_ne!(second.fingerprint, first.fingerprint);
    // A second call that was under way with the old token comes back late: it does not cost the new one.
    assert!(source.refused(&first).await);
    assert_eq!(bench.token(Use::Read).await.fingerprint, second.fingerprint);
    assert_eq!(
        bench.token(Use::Execute).await.fingerprint,
        other.fingerprint
    );
    assert_eq!(
        bench.told(),
        [
            ("token-issued", first.fingerprint.clone()),
            ("token-issued", other.fingerprint),
            ("token-revoked", first.fingerprint),
            ("token-issued", second.fingerprint),
        ]
    );
}

#[tokio::test]
async fn the_executors_token_ends_with_its_task() {
    let bench = Bench::new();
    let source = bench.source();
    assert_eq!(bench.mint.count(), 0, "made only when asked for");
    let token = bench.token(Use::Execute).await;
    source.release(&token).await.unwrap();
    assert_eq!(
        *bench.mint.ended.lock().unwrap(),
        [token.secret.expose_secret().to_owned()],
        "the provider was told"
    );
    let next = bench.token(Use::Execute).await;
    assert_ne!(next.fingerprint, token.fingerprint);
    // When the provider cannot be told, nobody is given the token any more all the same.
    bench.mint.fail_with(Some(away()));
    assert_eq!(source.release(&next).await.unwrap_err(), away());
    bench.mint.fail_with(None);
    assert_ne!(
        bench.token(Use::Execute).await.fingerprint,
        next.fingerprint
    );
    let revoked: Vec<_> = bench
        .told()
        .into_iter()
        .filter(|(kind, _)| *kind == "token-revoked")
        .collect();
    assert_eq!(revoked, [("token-revoked", token.fingerprint)]);
}

#[tokio::test]
async fn git_is_given_the_short_form_once_the_long_one_is_not_taken() {
    let bench = Bench::new();
    let source = bench.source();
    let long = bench.token(Use::Propose).await;
    assert_eq!(long.secret.expose_secret().len(), 600);
    let short = source.compatible_token(&long, Use::Propose, QUARTER).await;
    let short = short.unwrap().unwrap();
    assert_eq!(short.secret.expose_secret().len(), 40);
    let orders = bench.mint.orders.lock().unwrap().clone();
    assert_eq!(orders[0].form, Form::Usual);
    assert_eq!(orders[1].form, Form::Compatible);
    assert_eq!(orders[0].permissions, orders[1].permissions);
    let again = source.compatible_token(&short, Use::Propose, QUARTER).await;
    assert!(again.unwrap().is_none(), "there is no third form");
    let twice = source.compatible_token(&long, Use::Propose, QUARTER).await;
    assert_eq!(twice.unwrap().unwrap().fingerprint, short.fingerprint);
    assert_eq!(bench.mint.count(), 2, "kept like any other");
}

#[tokio::test]
async fn what_cannot_be_promised_is_refused_without_minting_for_ever() {
    let bench = Bench::new();
    let hours = Duration::from_hours(2);
    let error = bench.source().token(Use::Read, hours).await.unwrap_err();
    assert_eq!(bench.mint.count(), 0);
    // The provider's clock is far behind this machine's.
    *bench.mint.lifetime.lock().unwrap() = minutes(-10);
    let skewed = bench.source().token(Use::Read, NOTHING).await.unwrap_err();
    assert!(!error.is_transient() && !skewed.is_transient());
    insta::assert_snapshot!(format!("{error}\n{skewed}"), @r"
    getting a token for the poller: it would have to last 7200 s and lasts 3300 s by this machine's clock; check the clock, or do the work in shorter parts
    getting a token for the poller: it would have to last 0 s and lasts -600 s by this machine's clock; check the clock, or do the work in shorter parts
    ");
}

#[tokio::test]
async fn the_budget_is_the_installations_and_what_was_fetched_is_the_tokens() {
    let bench = Bench::new();
    let source = bench.source();
    let before = (source.identity(), bench.token(Use::Read).await.fingerprint);
    bench.clock.advance_millis(minutes(59));
    let after = (source.identity(), bench.token(Use::Read).await.fingerprint);
    assert_eq!(before.0, after.0);
    assert_eq!(before.0, CredentialIdentity::Installation(INSTALLATION));
    assert_eq!(before.0.to_string(), "installation:77");
    assert_ne!(
        before.1, after.1,
        "an ETag is good for the token that it came with"
    );
}

#[tokio::test]
async fn a_persons_token_is_the_same_for_every_use_and_cannot_be_had_again() {
    let personal = PersonalToken::new(SecretString::from("github_pat_canary"));
    let mut seen = Vec::new();
    for task in Use::ALL {
        let token = personal.token(task, QUARTER).await.unwrap();
        assert_eq!(token.secret.expose_secret(), "github_pat_canary");
        seen.push(token);
    }
    assert!(!personal.refused(&seen[0]).await);
    personal.release(&seen[0]).await.unwrap();
    let short = personal
        .compatible_token(&seen[0], Use::Read, NOTHING)
        .await;
    assert!(short.unwrap().is_none());
    let other = PersonalToken::new(SecretString::from("github_pat_other"));
    assert_ne!(personal.identity(), other.identity());
    let shown = format!("{personal:?} {:?} {}", seen[0], personal.identity());
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains(&seen[0].fingerprint));
}

#[tokio::test]
async fn a_token_shows_in_no_debug_text_no_error_and_no_event() {
    let bench = Bench::new();
    let source = bench.source();
    let token = bench.token(Use::Execute).await;
    let compatible = source
        .compatible_token(&token, Use::Execute, NOTHING)
        .await
        .unwrap();
    bench.clock.advance_millis(minutes(58));
    let next = bench.token(Use::Execute).await;
    source.refused(&next).await;
    let last = bench.token(Use::Execute).await;
    source.release(&last).await.unwrap();
    let mut shown = format!(
        "{token:?} {compatible:?} {:?}",
        bench.mint.orders.lock().unwrap()
    );
    for event in bench.told.lock().unwrap().iter() {
        shown.extend([format!("{event:?} {:?}\n", event.audit())]);
    }
    let made = bench.mint.made.lock().unwrap().clone();
    assert_eq!(made.len(), 4);
    for text in made {
        // Not even a part of it that would be of use.
        assert!(!shown.contains(&text[4..36]), "{text} in {shown}");
    }
    let told = bench.told.lock().unwrap();
    let details: Vec<String> = told
        .iter()
        .map(|event| {
            let audit = event.audit();
            format!("{} {}", audit.kind, audit.detail)
        })
        .collect();
    insta::assert_snapshot!(details.join("\n"));
}

#[test]
fn without_a_token_a_call_fails_as_the_token_did() {
    let call = ConnectorError::from(away());
    assert!(call.is_transient());
    let lasting = TokenError::Suspended {
        action: "getting a token for the poller".to_owned(),
        installation: 5,
    };
    let call = ConnectorError::from(lasting);
    assert!(!call.is_transient());
    insta::assert_snapshot!(call, @"getting a token for the poller: installation 5 is suspended; its owner can unsuspend it at the App's page under Installed GitHub Apps");
}

#[tokio::test]
async fn a_repository_that_is_known_by_name_alone_is_only_looked_at() {
    let bench = Bench::new();
    let source = bench
        .tokens
        .of(INSTALLATION, Target::Name("widget".to_owned()));
    source.token(Use::Read, NOTHING).await.unwrap();
    for task in [Use::Propose, Use::Execute] {
        let refused = source.token(task, NOTHING).await.unwrap_err();
        assert!(refused.to_string().contains("by name alone"), "{refused}");
    }
    assert_eq!(bench.mint.count(), 1);
}
