//! What is wrong is said by its name, with the mend, and nothing is half-written.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use sqlx::{AnyConnection, Connection as _};
use tokio::process::Command;

use super::place::Place;
use super::process::Ended;

/// The raw database of a place.
async fn database(place: &Place) -> AnyConnection {
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}", place.path("state/caretaker.db").display());
    AnyConnection::connect(&url).await.unwrap()
}

/// With a database, as `web` makes it.
async fn with_database() -> Place {
    let place = Place::with_keys().await;
    let (serving, _) = place.start(place.command(&["web"])).await;
    assert_eq!(serving.terminate().await, Some(0));
    place
}

#[tokio::test]
async fn an_unknown_key_is_named_with_its_place_and_the_nearest_one() {
    let text = "# ours\nserver: {listen: '127.0.0.1:0'}\nagent:\n  adaptor: command\n";
    let place = Place::with(text);
    for arguments in [
        &["serve"][..],
        &["worker"],
        &["web"],
        &["keys", "init"],
        &["project", "list"],
    ] {
        let refused = place.run(arguments).await;
        refused.refuses(&["caretaker.yaml:4:3:", "adaptor", "did you mean adapter"]);
    }
    assert_eq!(place.files(), ["caretaker.yaml"]);
}

#[tokio::test]
async fn abbreviated_and_malformed_object_ids_are_refused() {
    let place = Place::with("{}");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(["-c", "init.defaultBranch=main", "-C"])
            .arg(place.path(""))
            .args(arguments);
        Ended::of(git)
    };
    assert_eq!(git(&["init", "--quiet", "repository"]).await.code, Some(0));
    let commit = [
        "-C",
        "repository",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "one",
    ];
    assert_eq!(git(&commit).await.code, Some(0));
    let whole = git(&["-C", "repository", "rev-parse", "HEAD"]).await.out;
    let whole = whole.trim();
    let upper = whole.to_uppercase();
    let (short, long) = (&whole[..12], format!("{whole}0"));
    for wrong in [short, &long, &upper, "HEAD~1", "main@{0}", ""] {
        let arguments = ["change", "digest", "--repo", "repository", wrong, "main"];
        place
            .run(&arguments)
            .await
            .refuses(&[&format!("{wrong}\":"), "object id"]);
    }
    let arguments = ["change", "digest", "--repo", "repository", whole, "main"];
    assert_eq!(place.run(&arguments).await.code, Some(0));
    // A complete id that is nowhere.
    let absent = "1234567890".repeat(4);
    let arguments = ["change", "digest", "--repo", "repository", &absent, "main"];
    place
        .run(&arguments)
        .await
        .refuses(&[&absent, "fetch it first"]);
}

#[tokio::test]
async fn names_that_are_not_text_are_refused_where_text_is_needed() {
    let place = Place::with_keys().await;
    let before = place.files();
    let odd = std::ffi::OsStr::from_bytes(b"rules-\xff.yaml");
    let mut home = place.command(&["doctor"]);
    home.env("CARETAKER_HOME", odd);
    let refused = Ended::of(home).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!((refused.out + &refused.error).contains("CARETAKER_HOME"));
    let mut register = place.command(&["project", "register", "https://github.com/acme/widget"]);
    register.args(["--token-env", "PATH", "--rules"]).arg(odd);
    Ended::of(register)
        .await
        .refuses(&["rules-", "No such file"]);
    // A NUL cannot be in an argument; it can be in a file.
    place.write(
        "caretaker.yaml",
        "agent: {adapter: command, command: ['a\\0b', \"c\\0d\"]}\n",
    );
    place
        .run(&["serve"])
        .await
        .refuses(&["caretaker.yaml", "agent.command", "NUL"]);
    place.write("caretaker.yaml", "database: {url: \"sqlite://a\\0b\"}\n");
    place
        .run(&["serve"])
        .await
        .refuses(&["caretaker.yaml:1:17:", "database address"]);
    assert_eq!(place.files(), before);
}

#[tokio::test]
async fn a_role_secret_that_is_missing_or_wrong_stops_the_start_before_anything_is_made() {
    let place = Place::with_keys().await;
    let before = place.files();
    for part in ["serve", "worker"] {
        let mut missing = place.command(&[part]);
        missing.env_remove("CARETAKER_APPROVER_SECRET");
        let missing = Ended::of(missing).await;
        missing.refuses(&[
            "approver",
            "CARETAKER_APPROVER_SECRET",
            "keys.roles.approver.secret",
        ]);
        let mut wrong = place.command(&[part]);
        wrong.env(
            "CARETAKER_APPROVER_SECRET",
            "another-5b8e21c9f70a4d6e93c1a2f4",
        );
        let wrong = Ended::of(wrong).await;
        wrong.refuses(&["approver.key", "does not open the approver's key"]);
        assert!(!wrong.error.contains("another-5b8e"), "{}", wrong.error);
    }
    assert_eq!(place.files(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_somebody_keeps_locked_is_named_and_nothing_is_written() {
    let place = with_database().await;
    let mut holder = database(&place).await;
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut holder)
        .await
        .unwrap();
    let refused = place.run(&["serve"]).await;
    refused.refuses(&[
        "state/caretaker.db",
        "kept it locked",
        "nothing was written",
        "stop the program",
    ]);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
    let (serving, _) = place.start(place.command(&["serve"])).await;
    assert_eq!(serving.terminate().await, Some(0));
}

#[tokio::test]
async fn a_database_that_may_only_be_read_is_named() {
    let place = with_database().await;
    let file = place.path("state/caretaker.db");
    let mode = |bits| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(0o400);
    let before = std::fs::read(&file).unwrap();
    let mut command = place.command(&["serve"]);
    if rustix::process::geteuid().is_root() {
        // Root writes what its mode forbids, unless it has given that up.
        let plain = command.as_std();
        let mut without = Command::new("setpriv");
        without
            .args(["--bounding-set", "-dac_override,-dac_read_search"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(plain.get_current_dir().unwrap())
            .env_clear();
        for (name, value) in plain.get_envs() {
            if let Some(value) = value {
                without.env(name, value);
            }
        }
        command = without;
    }
    let refused = Ended::of(command).await;
    refused.refuses(&[
        "state/caretaker.db",
        "cannot be written",
        "write permission",
    ]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named_with_the_key_that_chooses_another() {
    let place = with_database().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken
        .local_addr()
        .map(|address| (taken, address.to_string()));
    let (_listener, address) = taken.unwrap();
    for part in ["serve", "web"] {
        let mut command = place.command(&[part]);
        command.env("CARETAKER_SERVER__LISTEN", &address);
        // Nothing has begun, so nothing is told but the reason.
        command.env("CARETAKER_LOG", "info");
        Ended::of(command)
            .await
            .refuses(&[&address, "in use", "server.listen"]);
    }
    // The other parts do not need it.
    let mut worker = place.command(&["worker"]);
    worker.env("CARETAKER_SERVER__LISTEN", "127.0.0.1:0");
    Ended::of(worker)
        .await
        .refuses(&["server.listen", "server.public_url"]);
}

#[tokio::test]
async fn the_demo_keeps_its_state_only_where_nothing_else_is() {
    let place = Place::with("{}");
    std::fs::create_dir(place.path("home")).unwrap();
    place.write("home/notes", "mine");
    let refused = place.run(&["demo", "--keep"]).await;
    let home = place.path("home").display().to_string();
    refused.refuses(&[&home, "not empty", "CARETAKER_HOME"]);
    assert_eq!(place.files(), ["caretaker.yaml", "home", "home/notes"]);
}

#[tokio::test]
async fn a_schedule_that_has_passed_ends_the_start_with_the_mend() {
    let place = Place::with_keys().await;
    let file = std::fs::read_to_string(place.path("caretaker.yaml")).unwrap();
    let passed = "poll: {schedule: '0 0 3 * * * 2020'}\n";
    place.write("caretaker.yaml", &(file + passed));
    for command in ["serve", "worker"] {
        let refused = place.run(&[command]).await;
        refused.refuses(&["poll.schedule", "check its year"]);
    }
    let doctor = place.run(&["doctor", "--offline"]).await;
    assert_eq!(doctor.code, Some(1));
    assert!(
        doctor.out.contains("FAILED   schedule") && doctor.out.contains("poll.schedule"),
        "{}",
        doctor.out
    );
}
