//! Job logs: behind a link on another host, large, gone, or not logs at all.

use std::sync::atomic::{AtomicU32, Ordering};

use caretaker::connector::{Connector as _, ConnectorError, JobLog};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provider::{Provider, Reply, TOKEN, json, with_headers};

fn repository() -> Value {
    json!({"id": 42})
}

/// An interface whose log is behind a link.
async fn linking_to(link: String) -> Provider {
    Provider::start(move |_| with_headers(302, &[("location", link.as_str())], &json!({}))).await
}

#[tokio::test]
async fn the_link_is_fetched_without_the_token() {
    let text = "\u{feff}2027-01-01T00:00:00.0000000Z ##[error]red\n";
    let store = Provider::start(move |_| Reply::Plain(200, Vec::new(), text.into())).await;
    let provider = linking_to(format!("{}/log?sig=secret", store.origin)).await;
    let log = provider.connector().job_log(5, 10_000).await.unwrap();
    let expected = JobLog::Text {
        bytes: text.into(),
        omitted: 0,
        cut: None,
    };
    assert_eq!(log, expected);
    let asked = store.asked().remove(0);
    assert!(asked.all("authorization").is_empty(), "{asked:?}");
    assert!(asked.all("x-github-api-version").is_empty(), "{asked:?}");
    assert_eq!(asked.all("accept"), ["*/*"], "{asked:?}");
    assert!(!format!("{asked:?}").contains(TOKEN));
}

#[tokio::test]
async fn every_byte_of_a_short_log_arrives_as_it_is() {
    let text: &[u8] = b"\xef\xbb\xbf2027-01-01T00:00:00.0000000Z \x1b[31mred\x1b[0m\r\n\xff\xfe\0\r\n\x1b]8;;x\x07\n\nend";
    let store = Provider::start(move |_| Reply::Plain(200, Vec::new(), text.to_vec())).await;
    let provider = linking_to(format!("{}/log", store.origin)).await;
    let log = provider.connector().job_log(5, 1 << 20).await.unwrap();
    let expected = JobLog::Text {
        bytes: text.to_vec(),
        omitted: 0,
        cut: None,
    };
    assert_eq!(log, expected);
}

#[tokio::test]
async fn a_long_log_keeps_whole_lines_of_head_and_tail() {
    let text: String = (0..100_000)
        .flat_map(|n| ["line ".to_owned(), n.to_string(), "\n".to_owned()])
        .collect();
    let whole = text.len() as u64;
    let store = Provider::start(move |_| Reply::Plain(200, Vec::new(), text.clone().into())).await;
    let provider = linking_to(format!("{}/log", store.origin)).await;
    let log = provider.connector().job_log(5, 4_000).await.unwrap();
    let JobLog::Text {
        bytes,
        omitted,
        cut: None,
    } = log
    else {
        panic!("{log:?}");
    };
    assert!(bytes.len() <= 4_000);
    assert_eq!(bytes.len() as u64 + omitted, whole);
    let kept = String::from_utf8(bytes).unwrap();
    assert!(kept.starts_with("line 0\nline 1\n") && kept.ends_with("line 99999\n"));
    let mut lines = kept.lines();
    assert!(lines.all(|line| line.starts_with("line ") && line[5..].parse::<u32>().is_ok()));
}

#[tokio::test]
async fn a_refusal_is_never_taken_for_the_log() {
    for (status, message) in [(404, "Not Found"), (410, "Gone")] {
        let provider = Provider::start(move |asked| match asked.tail() {
            "" => json(200, &repository()),
            _ => json(status, &json!({"message": message})),
        })
        .await;
        let log = provider.connector().job_log(5, 100).await.unwrap();
        let reason = format!("{status}: {message}");
        assert_eq!(log, JobLog::Missing { reason });
    }
    let provider = Provider::start(|_| json(403, &json!({"message": "no"}))).await;
    let error = provider.connector().job_log(5, 100).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Forbidden { .. }), "{error}");
}

#[tokio::test]
async fn a_404_from_a_repository_that_cannot_be_seen_is_not_a_missing_log() {
    let provider = Provider::start(|_| json(404, &json!({"message": "Not Found"}))).await;
    let error = provider.connector().job_log(5, 100).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Absent { .. }), "{error}");
}

#[tokio::test]
async fn only_links_of_the_web_are_fetched() {
    for link in [
        "file:///etc/passwd",
        "ftp://x/log",
        "/relative",
        "gopher://x",
        "",
    ] {
        let provider = linking_to(link.to_owned()).await;
        let error = provider.connector().job_log(5, 100).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Refused { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_store_may_refuse_redirect_or_break_off() {
    let at_the_store = |reply: Reply, times: usize| async move {
        let store = Provider::start(move |_| reply.clone()).await;
        let provider = linking_to(format!("{}/log?sig=secret", store.origin)).await;
        let log = provider.connector().job_log(5, 100).await;
        assert_eq!(store.count("GET"), times);
        log
    };
    let gone = at_the_store(json(410, &json!({})), 1).await.unwrap();
    assert!(matches!(gone, JobLog::Missing { .. }));
    let expired = at_the_store(json(403, &json!({})), 2).await.unwrap_err();
    assert!(expired.is_transient(), "a new link may work: {expired}");
    let failing = at_the_store(json(503, &json!({})), 1).await.unwrap_err();
    assert!(failing.is_transient(), "{failing}");
    let elsewhere = with_headers(302, &[("location", "http://127.0.0.1:9/")], &json!({}));
    assert!(!at_the_store(elsewhere, 1).await.unwrap_err().is_transient());
    let nothing = b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n".to_vec();
    let cut = at_the_store(Reply::Raw(nothing), 1).await.unwrap_err();
    assert!(cut.is_transient(), "{cut}");
    assert!(!cut.to_string().contains("secret"), "{cut}");
}

#[tokio::test]
async fn an_expired_link_is_asked_for_once_more() {
    let store = Provider::start(|asked| match asked.target.as_str() {
        "/log?sig=2" => Reply::Plain(200, Vec::new(), b"red\n".to_vec()),
        _ => json(403, &json!({})),
    })
    .await;
    let (origin, links) = (store.origin.clone(), AtomicU32::new(0));
    let provider = Provider::start(move |_| {
        let link = links.fetch_add(1, Ordering::SeqCst) + 1;
        let location = format!("{origin}/log?sig={link}");
        with_headers(302, &[("location", location.as_str())], &json!({}))
    })
    .await;
    let log = provider.connector().job_log(5, 100).await.unwrap();
    assert!(matches!(log, JobLog::Text { bytes, .. } if bytes == b"red\n"));
    assert_eq!((provider.count("GET"), store.count("GET")), (2, 2));
}

#[tokio::test]
async fn a_log_that_breaks_off_keeps_what_came_and_says_so() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\nline 1\nline".to_vec();
    let store = Provider::start(move |_| Reply::Raw(half.clone())).await;
    let provider = linking_to(format!("{}/log?sig=secret", store.origin)).await;
    let log = provider.connector().job_log(5, 100).await.unwrap();
    let JobLog::Text { bytes, cut, .. } = log else {
        panic!("{log:?}");
    };
    assert_eq!(bytes, b"line 1\nline");
    let cut = cut.unwrap();
    assert!(cut.contains("broke off"), "{cut}");
    assert!(!cut.contains("secret"), "{cut}");
}

#[tokio::test]
async fn an_endless_log_ends_at_the_deadline() {
    let store = Provider::start(|_| Reply::Endless).await;
    let provider = linking_to(format!("{}/log", store.origin)).await;
    let log = provider.impatient_connector().job_log(5, 100).await;
    let JobLog::Text { bytes, cut, .. } = log.unwrap() else {
        panic!("no text");
    };
    assert!(bytes.len() <= 100);
    assert!(cut.unwrap().contains("has not ended within 150 ms"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the text and the cap: never more than the cap, nothing lost uncounted, head first and tail last.
    #[test]
    fn what_is_kept_and_what_is_omitted_add_up(
        lines in proptest::collection::vec("[a-z]{0,30}", 0..60),
        cap in 0_usize..600,
    ) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let log = runtime.block_on(async {
            let text = text.clone();
            let provider =
                Provider::start(move |_| Reply::Plain(200, Vec::new(), text.clone().into())).await;
            provider.connector().job_log(5, cap).await.unwrap()
        });
        let JobLog::Text { bytes, omitted, cut: None } = log else { panic!("no text") };
        prop_assert!(bytes.len() <= cap);
        prop_assert_eq!(bytes.len() as u64 + omitted, text.len() as u64);
        if text.len() <= cap {
            prop_assert_eq!(bytes, text.into_bytes());
        } else {
            for line in String::from_utf8(bytes).unwrap().lines() {
                prop_assert!(lines.iter().any(|whole| whole == line || whole.ends_with(line)));
            }
        }
    }
}
