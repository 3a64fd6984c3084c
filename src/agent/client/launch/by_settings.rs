//! The clients with one file of settings: Claude Code, Gemini CLI and Qwen Code.

use serde_json::json;

use super::super::prompt::Job;
use super::super::table::Client;
use super::{Launch, NO_KEY, Start, pretty};

impl Start<'_> {
    /// The client's tools by name, without those that write where nothing is to be written.
    fn tools(&self, client: Client) -> Vec<&'static str> {
        let (reads, writes, executes) = client.tool_names();
        let writes = if self.job == Job::Fix { writes } else { &[] };
        [reads, writes, executes].concat()
    }

    pub(super) fn claude(&self) -> Result<Launch, String> {
        // It is given as it is; that it is JSON is all that is looked at.
        self.hooks_member()?;
        let tools = self.tools(Client::Claude).join(",");
        let mut launch = Launch::with(&[
            "-p",
            self.prompt,
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            self.model,
            "--permission-mode",
            "acceptEdits",
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--tools",
            &tools,
            "--allowedTools",
            &tools,
            "--settings",
        ]);
        launch.arguments.push(self.at("settings.json")?);
        launch.set("ANTHROPIC_BASE_URL", self.base());
        launch.set("CLAUDE_CONFIG_DIR", self.at(".claude")?);
        launch.set_all(&[
            ("ANTHROPIC_API_KEY", NO_KEY),
            ("ANTHROPIC_DEFAULT_HAIKU_MODEL", self.model),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_TELEMETRY", "1"),
        ]);
        launch.seal("settings.json", self.hooks.to_owned());
        Ok(launch)
    }

    pub(super) fn gemini(&self) -> Result<Launch, String> {
        let settings = json!({
            "context": {"fileName": "caretaker-reads-no-context-files"},
            "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
            "hooks": self.hooks_member()?,
            "hooksConfig": {"enabled": true, "disabled": []},
            "mcpServers": {},
            "model": {"name": self.model},
            "privacy": {"usageStatisticsEnabled": false},
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
            "telemetry": {"enabled": false},
            "tools": {"core": self.tools(Client::Gemini), "sandbox": false},
        });
        let mut launch = Launch::with(&[
            "-p",
            self.prompt,
            "--approval-mode",
            "yolo",
            "--output-format",
            "stream-json",
            "--extensions",
            "none",
            "-m",
            self.model,
        ]);
        launch.set("GOOGLE_GEMINI_BASE_URL", self.base());
        launch.set_all(&[
            ("GEMINI_API_KEY", NO_KEY),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
        ]);
        launch.folders.push(".gemini".into());
        launch.seal(".gemini/settings.json", pretty(&settings));
        Ok(launch)
    }

    pub(super) fn qwen(&self) -> Result<Launch, String> {
        let settings = json!({
            "context": {"fileName": "caretaker-reads-no-context-files"},
            "disableAllHooks": false,
            "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
            "hooks": self.hooks_member()?,
            "mcpServers": {},
            "privacy": {"usageStatisticsEnabled": false},
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
            "telemetry": {"enabled": false},
        });
        let mut launch = Launch::with(&[
            self.prompt,
            "--approval-mode",
            "yolo",
            "-o",
            "stream-json",
            "--core-tools",
        ]);
        launch.arguments.push(self.tools(Client::Qwen).join(","));
        launch.set("OPENAI_BASE_URL", format!("{}/v1", self.base()));
        launch.set_all(&[
            ("OPENAI_API_KEY", NO_KEY),
            ("OPENAI_MODEL", self.model),
            ("QWEN_TELEMETRY_ENABLED", "false"),
        ]);
        launch.folders.push(".qwen".into());
        launch.seal(".qwen/settings.json", pretty(&settings));
        Ok(launch)
    }
}
