//! The forge as a child process that obeys lines on its standard input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use caretaker::forge::{
    FileEdit, Forge, ForgeOptions, NewJob, NewRun, NewStep, NewToken, ObjectId, RepositoryHandle,
    Sources, TokenKind, start_with,
};

/// How many credentials the projects share: one would meet the provider's points a minute.
const CREDENTIALS: usize = 10;
/// Runs that every repository has before the hour begins.
const HISTORY: usize = 20;
/// What a failed job's log says.
const LOG: &str = "running 1 test\ntest decodes ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";

/// A forge in another process.
pub(crate) struct ForgeProcess {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Its address.
    pub(crate) url: String,
    /// Tokens that it takes, each with limits of its own.
    pub(crate) tokens: Vec<String>,
    /// The numbers of its repositories.
    pub(crate) repositories: Vec<u64>,
}

impl ForgeProcess {
    pub(crate) fn start(folder: &str, count: usize, now: i64) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["forge", folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().context("the forge has no input")?;
        let answers = child.stdout.take().context("the forge has no output")?;
        let mut forge = Self {
            child,
            orders,
            answers: BufReader::new(answers),
            url: String::new(),
            tokens: Vec::new(),
            repositories: Vec::new(),
        };
        forge.order(&format!("at {now}"))?;
        let made = forge.order(&format!("create {count}"))?;
        let (place, numbers) = made.split_once(';').context("the forge gave no numbers")?;
        let (url, tokens) = place.split_once(' ').context("the forge gave no address")?;
        url.clone_into(&mut forge.url);
        forge.tokens = tokens.split(' ').map(str::to_owned).collect();
        let numbers: Result<_, _> = numbers.split(' ').map(str::parse).collect();
        forge.repositories = numbers.context("reading the numbers of the repositories")?;
        Ok(forge)
    }

    /// One order, one answer.
    pub(crate) fn order(&mut self, order: &str) -> anyhow::Result<String> {
        writeln!(self.orders, "{order}")?;
        self.orders.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        anyhow::ensure!(!answer.is_empty(), "the forge ended at the order {order:?}");
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for ForgeProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The child's side: serves until its input ends.
pub(crate) async fn serve(folder: &str) -> anyhow::Result<()> {
    let clock = Arc::new(AtomicU64::new(0));
    let seconds = Arc::clone(&clock);
    let sources = Sources {
        now: Arc::new(move || seconds.load(Ordering::SeqCst) / 1000),
        ..Sources::default()
    };
    let options = ForgeOptions::new(folder, ([127, 0, 0, 1], 0).into());
    let forge = start_with(options, sources).await?;
    // With its tip, which no run moves: asking git for it again would cost more than everything that is measured.
    let mut repositories: Vec<(RepositoryHandle, ObjectId)> = Vec::new();
    let mut under_way: Vec<Option<u64>> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words.as_slice() {
            ["at", now] => {
                clock.store(now.parse()?, Ordering::SeqCst);
                "ok".to_owned()
            }
            ["create", count] => {
                let files = [("README.md", FileEdit::file("watched\n"))];
                for number in 0..count.parse::<usize>()? {
                    let made = forge.create_repository("acme", &format!("r{number}"), &files)?;
                    let tip = made.tip("main")?;
                    for _ in 0..HISTORY {
                        made.add_run(run(&tip, Some("success")))?;
                    }
                    repositories.push((made, tip));
                    under_way.push(None);
                }
                let ids = repositories.iter().map(|(made, _)| made.id().to_string());
                let ids: Vec<String> = ids.collect();
                let tokens: Vec<String> = (0..CREDENTIALS).map(|_| token(&forge)).collect();
                format!("{} {};{}", forge.url(), tokens.join(" "), ids.join(" "))
            }
            ["begin", place] => {
                let place: usize = place.parse()?;
                let found = repositories.get(place).context("no such repository")?;
                let (repository, tip) = found;
                let begun = repository.add_run(run(tip, None))?;
                *under_way.get_mut(place).context("no such repository")? = Some(begun);
                "ok".to_owned()
            }
            ["end", place, conclusion] => {
                let place: usize = place.parse()?;
                let begun = under_way.get_mut(place).and_then(Option::take);
                let begun = begun.context("nothing runs there")?;
                let (repository, _) = repositories.get(place).context("no such repository")?;
                repository.complete_run(begun, conclusion, vec![job(conclusion)])?;
                "ok".to_owned()
            }
            _ => anyhow::bail!("not an order: {line}"),
        };
        writeln!(std::io::stdout(), "{answer}")?;
    }
    forge.stop().await;
    Ok(())
}

fn token(forge: &Forge) -> String {
    let scopes = vec!["repo".to_owned()];
    forge.issue_token(NewToken {
        kind: TokenKind::Classic { scopes },
        repositories: None,
        expires_at: None,
    })
}

fn run(tip: &ObjectId, conclusion: Option<&str>) -> NewRun {
    NewRun {
        workflow: "ci".to_owned(),
        workflow_id: 9,
        workflow_path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        branch: Some("main".to_owned()),
        head_sha: tip.clone(),
        status: if conclusion.is_some() {
            "completed"
        } else {
            "in_progress"
        }
        .to_owned(),
        conclusion: conclusion.map(str::to_owned),
        jobs: conclusion.map(job).into_iter().collect(),
    }
}

fn job(conclusion: &str) -> NewJob {
    NewJob {
        name: "test".to_owned(),
        conclusion: Some(conclusion.to_owned()),
        steps: vec![NewStep {
            name: "Run tests".to_owned(),
            conclusion: Some(conclusion.to_owned()),
        }],
        log: Some(LOG.as_bytes().to_vec()),
    }
}
