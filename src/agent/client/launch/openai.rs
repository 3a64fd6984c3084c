//! The clients that take any server that speaks as `OpenAI`'s does: Copilot CLI, opencode and goose.

use serde_json::json;

use super::super::prompt::Job;
use super::{Launch, NO_KEY, Start, pretty};

impl Start<'_> {
    pub(super) fn copilot(&self) -> Result<Launch, String> {
        self.hooks_member()?;
        let mut launch = Launch::with(&[
            "-p",
            self.prompt,
            "--allow-all-tools",
            "--output-format",
            "json",
            "--disable-client-telemetry",
        ]);
        launch.set("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", self.base()));
        launch.set_all(&[
            ("COPILOT_MODEL", self.model),
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_API_KEY", NO_KEY),
        ]);
        launch.files.push((
            ".copilot/hooks/caretaker.json".into(),
            self.hooks.to_owned(),
        ));
        launch.folders.push(".copilot".into());
        launch.sealed.push(".copilot/hooks".into());
        Ok(launch)
    }

    pub(super) fn opencode(&self) -> Launch {
        let edit = if self.job == Job::Fix {
            "allow"
        } else {
            "deny"
        };
        let model = format!("caretaker/{}", self.model);
        let mut models = serde_json::Map::new();
        models.insert(
            self.model.to_owned(),
            json!({"name": self.model, "tool_call": true, "limit": {"context": 128_000, "output": 16_000}}),
        );
        let configuration = json!({
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": false,
            "share": "disabled",
            "model": model,
            "small_model": model,
            "permission": {"edit": edit, "bash": "allow", "webfetch": "deny", "task": "deny", "external_directory": "deny"},
            "provider": {"caretaker": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "caretaker",
                "options": {"baseURL": format!("{}/v1", self.base()), "apiKey": NO_KEY},
                "models": models,
            }},
        });
        let mut launch = Launch::with(&["run", "--format", "json", "--auto", self.prompt]);
        launch.set_all(&[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_CLAUDE_CODE", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
        ]);
        launch.files.push((
            ".config/opencode/opencode.json".into(),
            pretty(&configuration),
        ));
        // It would write this one itself, and end where it cannot.
        launch.files.push((
            ".config/opencode/.gitignore".into(),
            "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore\n".to_owned(),
        ));
        launch.files.push((
            ".config/opencode/plugin/caretaker.js".into(),
            self.hooks.to_owned(),
        ));
        launch.sealed.push(".config".into());
        launch
    }

    pub(super) fn goose(&self) -> Result<Launch, String> {
        self.hooks_member()?;
        let mut launch = Launch::with(&[
            "run",
            "--text",
            self.prompt,
            "--output-format",
            "stream-json",
            "--no-session",
            "--with-builtin",
            "developer",
        ]);
        launch.set("OPENAI_HOST", self.base());
        launch.set_all(&[
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_MODE", "auto"),
            ("GOOSE_MODEL", self.model),
            ("GOOSE_PROVIDER", "openai"),
            ("GOOSE_TELEMETRY_ENABLED", "false"),
            ("OPENAI_API_KEY", NO_KEY),
            ("OPENAI_BASE_PATH", "v1/chat/completions"),
        ]);
        launch.files.push((
            ".agents/plugins/caretaker/hooks/hooks.json".into(),
            self.hooks.to_owned(),
        ));
        launch.sealed.push(".agents".into());
        Ok(launch)
    }
}
