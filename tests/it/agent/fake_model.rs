//! A scripted model server in another language, which speaks all four protocols and more: `agents/fake_model.py` of the shared data.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use url::Url;

/// Runs the server at a port that is free, and says which.
const STARTER: &str = r#"
import http.server, runpy, sys
class Server(http.server.ThreadingHTTPServer):
    def __init__(self, address, handler):
        super().__init__(("127.0.0.1", 0), handler)
        print(self.server_port, flush=True)
http.server.ThreadingHTTPServer = Server
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"#;

pub(crate) struct FakeModel {
    server: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl FakeModel {
    /// Starts it with its script; `None` where the shared data is absent.
    pub(crate) fn start(script: &Value) -> Option<Self> {
        let program = crate::support::corpus("agents/fake_model.py")?;
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("fake_model.py"), program).unwrap();
        std::fs::write(file("script.json"), script.to_string()).unwrap();
        let mut server = Command::new("python3")
            .args(["-c", STARTER])
            .arg(file("fake_model.py"))
            .arg("--script")
            .arg(file("script.json"))
            .arg("--log")
            .arg(file("log"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(server.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        Some(Self {
            port: line.trim().parse().unwrap(),
            server,
            folder,
        })
    }

    pub(crate) fn base(&self) -> Url {
        format!("http://127.0.0.1:{}/", self.port).parse().unwrap()
    }

    /// Every request that it got.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}
