//! Codex.

use super::{Launch, NO_KEY, Start, text};

/// Features that reach beyond the folder and its shell, start what is not hooked, or try again for ever.
const OFF: [&str; 12] = [
    "apps",
    "browser_use",
    "computer_use",
    "daemon_auto_start",
    "enable_request_compression",
    "goals",
    "image_generation",
    "multi_agent",
    "plugins",
    "remote_plugin",
    "tool_suggest",
    "unbounded_connection_retries",
];

impl Start<'_> {
    pub(super) fn codex(&self) -> Result<Launch, String> {
        let mut launch = Launch::with(&[
            "exec",
            "--json",
            "--color",
            "never",
            "--ephemeral",
            "--skip-git-repo-check",
            "--ignore-rules",
            // The hooks are ours, in a file that it cannot change; nobody is there to say so at a prompt.
            "--dangerously-bypass-hook-trust",
            // It already is in a sandbox, in which its own cannot be built.
            "--dangerously-bypass-approvals-and-sandbox",
            "-C",
        ]);
        let tree = text(self.tree)?;
        launch
            .arguments
            .extend([tree, "-m", self.model, self.prompt].map(str::to_owned));
        launch.set("CODEX_HOME", self.at(".codex")?);
        launch.set("CARETAKER_MODEL_KEY", NO_KEY);
        launch.folders.push(".codex".into());
        launch.seal(".codex/config.toml", self.codex_configuration(tree));
        launch.seal(".codex/hooks.json", self.hooks.to_owned());
        Ok(launch)
    }

    fn codex_configuration(&self, tree: &str) -> String {
        let features = OFF.join(" = false\n");
        format!(
            "model = {model}\nmodel_provider = \"caretaker\"\ncheck_for_update_on_startup = false\nweb_search = \"disabled\"\n\
             project_doc_max_bytes = 0\n\n\
             [analytics]\nenabled = false\n\n[history]\npersistence = \"none\"\n\n[features]\nhooks = true\n{features} = false\n\n\
             [model_providers.caretaker]\nname = \"caretaker\"\nbase_url = {base}\nwire_api = \"responses\"\nenv_key = \"CARETAKER_MODEL_KEY\"\n\
             request_max_retries = 2\nstream_max_retries = 2\n\n\
             [projects.{tree}]\ntrust_level = \"untrusted\"\n",
            model = quoted(self.model),
            base = quoted(&format!("{}/v1", self.base())),
            tree = quoted(tree),
        )
    }
}

/// A basic string of TOML, whose escapes are those of JSON (TOML 1.0, Strings), but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}
