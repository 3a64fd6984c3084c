//! The long form of installation tokens through everything that carries one: git's question and a header.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::connector::Connector as _;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubConnector, GithubOptions};
use caretaker::workspace::git_command::{GitCommand, RefName, Refspec, Remote};

use super::*;

/// Answers the requests in turn, and hands out their heads.
fn answering(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (heads, received) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            heads.send(head).unwrap();
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (origin, received)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn authorization(head: &str) -> Option<&str> {
    let line = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
    line.and_then(|line| line.split_once(": "))
        .map(|(_, value)| value)
}

// Break it: give `LONGEST` in workspace/git_command/askpass.rs the value 512.
#[tokio::test]
async fn six_hundred_characters_reach_git_through_its_question_and_show_in_no_error() {
    let token = token_text(Form::Usual, 1);
    assert_eq!(token.len(), 600);
    let challenge = "WWW-Authenticate: Basic realm=\"r\"\r\n";
    let (origin, heads) = answering(vec![
        answer("401 Unauthorized", challenge, ""),
        // A server that says the credential back.
        answer(
            "403 Forbidden",
            "Content-Type: text/plain\r\n",
            &format!("no: {token}"),
        ),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("ours.git");
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "--bare", "--template="])
        .arg(&repository)
        .status();
    assert!(made.unwrap().success());
    let git = GitCommand::new(repository, env!("CARGO_BIN_EXE_caretaker")).unwrap();
    let git = git.with_deadline(Duration::from_secs(20));
    let secret = Some(SecretString::from(token.as_str()));
    let remote = Remote::new(&format!("{origin}/octo/widget.git"), secret).unwrap();
    let name = |text: &str| text.parse::<RefName>().unwrap();
    let refspec = Refspec::Ref {
        from: name("refs/heads/main"),
        to: name("refs/remote/main"),
    };
    let error = git.fetch(&remote, &[refspec]).await.unwrap_err();
    assert_eq!(authorization(&heads.recv().unwrap()), None);
    let encoded = STANDARD.encode(format!("x-access-token:{token}"));
    let head = heads.recv().unwrap();
    assert_eq!(
        authorization(&head),
        Some(format!("Basic {encoded}").as_str())
    );
    let shown = format!("{error} {error:?} {remote:?}");
    assert!(
        !shown.contains(&token[..40]) && !shown.contains(&encoded[..40]),
        "{shown}"
    );
}

#[tokio::test]
async fn six_hundred_characters_fit_into_a_header_and_show_in_no_error() {
    let token = token_text(Form::Usual, 2);
    let (origin, heads) = answering(vec![answer("401 Unauthorized", "", "")]);
    let options = GithubOptions {
        api_url: origin.clone(),
        web_url: origin.clone(),
        git_url: origin,
        owner: "octo".to_owned(),
        name: "widget".to_owned(),
        credential: Arc::new(PersonalToken::new(token.as_str().into())),
        expected_repository_id: None,
        deadline: Duration::from_secs(20),
    };
    let connector = GithubConnector::alone(options, Arc::new(FixedClock::at(NOW))).unwrap();
    let error = connector.repository().await.unwrap_err();
    let head = heads.recv().unwrap();
    assert_eq!(
        authorization(&head),
        Some(format!("Bearer {token}").as_str())
    );
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(&token[..40]), "{shown}");
}
