//! What processes say on standard error.

use std::io;
use std::sync::{Arc, Mutex};

use caretaker::config::Environment;
use caretaker::telemetry::{LogFormat, Logging};
use tracing::level_filters::LevelFilter;

use super::place::Place;
use super::process::Ended;

/// A writer that keeps what it is given.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is written when these things happen.
fn written(level: LevelFilter, format: LogFormat, happen: impl FnOnce()) -> String {
    let kept = Kept::default();
    let writer = kept.clone();
    let subscriber = Logging { level, format }.subscriber(move || writer.clone());
    tracing::subscriber::with_default(subscriber, happen);
    let bytes = kept.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

/// Foreign text that wants to be an event of its own, in colour and backwards.
const HOSTILE: &str =
    "job\n2026-01-01T00:00:00Z  INFO caretaker: all is well\r\u{1b}[2J\u{202e}\u{9b}31m";

fn hostile() {
    tracing::warn!(target: "caretaker::watch", job = %HOSTILE, reason = ?HOSTILE, "{HOSTILE} \"é\"");
}

#[test]
fn foreign_text_stays_one_printable_line() {
    let text = written(LevelFilter::INFO, LogFormat::Text, hostile);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.ends_with('\n') && text.contains(" WARN caretaker::watch: "),
        "{text}"
    );
    let line = text.trim_end_matches('\n');
    assert!(
        !line
            .chars()
            .any(|character| character.is_control() || character == '\u{202e}'),
        "{line:?}"
    );
    assert!(
        line.contains("job\\n2026") && line.contains("\"é\""),
        "{line}"
    );
}

#[test]
fn json_is_one_object_a_line() {
    let text = written(LevelFilter::INFO, LogFormat::Json, hostile);
    assert_eq!(text.lines().count(), 1, "{text}");
    let event: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(event["fields"]["job"], HOSTILE);
    assert_eq!(
        (&event["level"], &event["target"]),
        (&"WARN".into(), &"caretaker::watch".into())
    );
}

#[test]
fn libraries_never_tell_more_than_warnings() {
    let happen = || {
        tracing::trace!(target: "caretaker::worker", "ours, in detail");
        tracing::info!(target: "hyper::proto", "GET /a/TOKEN");
        tracing::trace!(target: "h2::codec", "authorization: Bearer TOKEN");
        tracing::warn!(target: "sqlx::query", "slow");
    };
    let everything = written(LevelFilter::TRACE, LogFormat::Text, happen);
    assert!(!everything.contains("TOKEN"), "{everything}");
    assert!(
        everything.contains("in detail") && everything.contains("slow"),
        "{everything}"
    );
    assert!(!written(LevelFilter::ERROR, LogFormat::Text, happen).contains("slow"));
    assert_eq!(written(LevelFilter::OFF, LogFormat::Text, happen), "");
}

#[test]
fn the_environment_says_how_much_and_how() {
    let asked = |variables: &[(&str, &str)]| {
        let environment = Environment::new(variables.iter().copied(), std::path::Path::new("/"));
        Logging::from_environment(&environment, LevelFilter::INFO)
    };
    let usual = Logging {
        level: LevelFilter::INFO,
        format: LogFormat::Text,
    };
    assert_eq!(asked(&[]), Ok(usual));
    assert_eq!(asked(&[("CARETAKER_LOG", "")]), Ok(usual));
    let detailed = asked(&[("CARETAKER_LOG", "Debug"), ("CARETAKER_LOG_FORMAT", "json")]);
    assert_eq!(
        detailed,
        Ok(Logging {
            level: LevelFilter::DEBUG,
            format: LogFormat::Json,
        })
    );
    for wrong in ["loud", "3", "caretaker=debug", "info,sqlx=trace"] {
        let refused = asked(&[("CARETAKER_LOG", wrong)]).unwrap_err().to_string();
        assert!(
            refused.contains("CARETAKER_LOG:") && refused.contains("off, error, warn"),
            "{refused}"
        );
    }
    let refused = asked(&[("CARETAKER_LOG_FORMAT", "xml")])
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("CARETAKER_LOG_FORMAT:") && refused.contains("text or json"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_logs_in_the_form_that_is_asked_for_and_ends_when_told_to() {
    let place = Place::with_keys().await;
    let mut command = place.command(&["serve"]);
    command.env("CARETAKER_LOG_FORMAT", "json");
    let (serving, _) = place.start(command).await;
    let log = serving.log();
    assert_eq!(serving.terminate().await, Some(0));
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said = |piece: &str| {
        events
            .iter()
            .any(|event| event["fields"]["message"].as_str().unwrap().contains(piece))
    };
    assert!(
        said("without a sandbox") && said("no coder") && said("no notifier"),
        "{log}"
    );

    let mut loud = place.command(&["serve"]);
    loud.env("CARETAKER_LOG", "loud");
    Ended::of(loud)
        .await
        .refuses(&["CARETAKER_LOG", "\"loud\"", "info"]);
}

// Break it: open the keys for pages alone in `cli::serve`.
#[tokio::test(flavor = "multi_thread")]
async fn pages_alone_need_no_secret_that_signs() {
    let place = Place::with_keys().await;
    for role in ["proposer", "policy", "executor"] {
        std::fs::remove_file(place.path(&format!("state/keys/{role}.secret"))).unwrap();
    }
    let mut command = place.command(&["web"]);
    command.env_remove("CARETAKER_APPROVER_SECRET");
    let (serving, pages) = place.start(command).await;
    let (status, _) =
        super::inbox::look(&super::inbox::browser(), &format!("{pages}/readyz")).await;
    assert_eq!(status, 200);
    assert_eq!(serving.log(), "");
    assert_eq!(serving.terminate().await, Some(0));
}
