//! What a hook costs: `caretaker hook-gate check`, allowed and denied, a process each, beside a program that does nothing and, where
//! `CARETAKER_INTEROP_PYTHON` has it, beside Bernstein's command on the same policy file. `cargo bench --bench hook_gate`.
//!
//! Wall clock of single processes one after the other (median and least); processor time of all of them together; the most memory
//! that one of them held; and a hundred at once.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Tried<T> = Result<T, Box<dyn std::error::Error>>;

const POLICY: &str = r#"{"path_allowlist":["src/","docs/*.md"],"producers":[{"command":["true"],"kind":"test","name":"tests","required":true}],"task_id":"task-1","v":1}"#;
const ALLOW: &str = r#"{"tool_name":"Write","tool_input":{"file_path":"src/a.txt","content":"x"}}"#;
const DENY: &str =
    r#"{"tool_name":"Write","tool_input":{"file_path":"secrets/a.txt","content":"x"}}"#;
/// Runs of what takes milliseconds.
const OURS: usize = 200;
/// Runs of what takes seconds.
const THEIRS: usize = 5;

fn main() -> Tried<()> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    let policies = work.join(".sdd/runtime/hook_gate");
    std::fs::create_dir_all(&policies)?;
    std::fs::create_dir_all(work.join("src"))?;
    std::fs::write(policies.join("S1.json"), POLICY)?;
    std::fs::write(folder.path().join("policy.json"), POLICY)?;
    let bench = Bench {
        work,
        home: folder.path().join("home"),
    };
    bench.register(&folder.path().join("policy.json"))?;
    say("| command | runs | wall median ms | wall least ms | CPU ms each | peak MiB |")?;
    say("|---|---|---|---|---|---|")?;
    bench.row("/bin/true", OURS, "", 0, &|| Command::new("/bin/true"))?;
    let ours = |more: &'static [&'static str]| move || bench_command(more);
    bench.row("check, allow", OURS, ALLOW, 0, &ours(&[]))?;
    bench.row("check, deny", OURS, DENY, 2, &ours(&[]))?;
    bench.row(
        "check --compat, allow",
        OURS,
        ALLOW,
        0,
        &ours(&["--compat"]),
    )?;
    bench.row("check --compat, deny", OURS, DENY, 2, &ours(&["--compat"]))?;
    if let Some(theirs) = bernstein() {
        let command = || {
            let mut command = Command::new(&theirs);
            command.args([
                "hook-gate",
                "check",
                "--session",
                "S1",
                "--event",
                "PreToolUse",
            ]);
            command
        };
        bench.row("bernstein, allow", THEIRS, ALLOW, 0, &command)?;
        bench.row("bernstein, deny", THEIRS, DENY, 2, &command)?;
    } else {
        say("\nbernstein: CARETAKER_INTEROP_PYTHON names no Python that has it")?;
    }
    bench.at_once(100)
}

fn bench_command(more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
    command.args([
        "hook-gate",
        "check",
        "--session",
        "S1",
        "--event",
        "PreToolUse",
    ]);
    command.args(more);
    command
}

/// Bernstein's command beside the Python that has it.
fn bernstein() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("CARETAKER_INTEROP_PYTHON")?);
    let program = python.parent()?.join("bernstein");
    program.is_file().then_some(program)
}

struct Bench {
    work: PathBuf,
    home: PathBuf,
}

impl Bench {
    fn register(&self, policy: &Path) -> Tried<()> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command
            .args(["hook-gate", "register", "--session", "S1", "--policy"])
            .arg(policy)
            .arg("--workdir")
            .arg(&self.work)
            .env("CARETAKER_HOME", &self.home)
            .stdout(Stdio::null());
        if command.status()?.success() {
            Ok(())
        } else {
            Err("registering failed".into())
        }
    }

    fn start(&self, mut command: Command, event: &str) -> Tried<Child> {
        let mut child = command
            .current_dir(&self.work)
            .env("CARETAKER_HOME", &self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // One that does not read has closed its end.
            drop(input.write_all(event.as_bytes()));
        }
        Ok(child)
    }

    fn row(
        &self,
        name: &str,
        runs: usize,
        event: &str,
        code: i32,
        command: &dyn Fn() -> Command,
    ) -> Tried<()> {
        let peak = self.peak(event, command)?;
        let before = children_seconds()?;
        let mut walls = Vec::with_capacity(runs);
        for _ in 0..runs {
            let begin = Instant::now();
            let ended = self.start(command(), event)?.wait()?;
            walls.push(begin.elapsed());
            if ended.code() != Some(code) {
                return Err(format!("{name}: ended with {ended}, not {code}").into());
            }
        }
        let each = (children_seconds()? - before) * 1000.0 / f64::from(u32::try_from(runs)?);
        walls.sort();
        let (median, least) = (walls.get(runs / 2), walls.first());
        say(&format!(
            "| {name} | {runs} | {:.1} | {:.1} | {each:.1} | {peak:.1} |",
            milliseconds(median),
            milliseconds(least),
        ))
    }

    /// The most memory of three runs, looked at while they run.
    fn peak(&self, event: &str, command: &dyn Fn() -> Command) -> Tried<f64> {
        let mut most = 0_u32;
        for _ in 0..3 {
            let mut child = self.start(command(), event)?;
            let status = format!("/proc/{}/status", child.id());
            while child.try_wait()?.is_none() {
                let text = std::fs::read_to_string(&status).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
                let kibibytes = kibibytes.and_then(|number| number.trim().parse().ok());
                most = most.max(kibibytes.unwrap_or_default());
            }
        }
        Ok(f64::from(most) / 1024.0)
    }

    fn at_once(&self, count: usize) -> Tried<()> {
        let begin = Instant::now();
        let children: Vec<Child> = (0..count)
            .map(|_| self.start(bench_command(&[]), ALLOW))
            .collect::<Tried<_>>()?;
        for mut child in children {
            if child.wait()?.code() != Some(0) {
                return Err("one of many did not allow".into());
            }
        }
        let took = begin.elapsed();
        say(&format!(
            "\n{count} checks at once: {:.0} ms together",
            milliseconds(Some(&took))
        ))
    }
}

fn milliseconds(time: Option<&Duration>) -> f64 {
    time.map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

/// Processor time of all children so far (proc(5): user and system time in hundredths of a second).
fn children_seconds() -> Tried<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("reading /proc/self/stat")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |place: usize| -> Tried<f64> {
        Ok(fields
            .get(place)
            .ok_or("reading /proc/self/stat")?
            .parse()?)
    };
    Ok((field(13)? + field(14)?) / 100.0)
}

fn say(line: &str) -> Tried<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
