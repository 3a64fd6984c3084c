//! The last message in a client's own stream of events.

use serde_json::Value;

use super::Client;

/// The text of the last message that the client's model wrote.
///
/// # Errors
/// There is none, or the stream says that the client failed; in words.
pub fn last_message(client: Client, stream: &[u8]) -> Result<String, String> {
    let mut last = Last::default();
    let lines = stream.split(|byte| *byte == b'\n');
    // Clients print a word or two beside their events.
    for event in lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
        last.hear(client, &event)?;
    }
    let text = last.text.trim();
    if text.is_empty() {
        return Err(format!(
            "its stream holds no message of the model ({} bytes)",
            stream.len()
        ));
    }
    Ok(unfenced(text).to_owned())
}

#[derive(Default)]
struct Last {
    text: String,
    /// What the message is called that the text is of; pieces of the same one are put together.
    of: Option<String>,
    /// Whether the next piece goes on with it.
    open: bool,
}

impl Last {
    fn hear(&mut self, client: Client, event: &Value) -> Result<(), String> {
        let kind = event["type"].as_str().unwrap_or_default();
        match client {
            Client::Claude | Client::Qwen => self.hear_result(kind, event)?,
            Client::Codex => {
                let item = &event["item"];
                match kind {
                    "item.completed" if item["type"] == "agent_message" => {
                        self.whole(item["text"].as_str());
                    }
                    "turn.failed" => return Err(failure(&event["error"]["message"])),
                    _ => {}
                }
            }
            Client::Gemini => match kind {
                "message" if event["role"] == "assistant" => {
                    self.piece(event["content"].as_str(), None);
                }
                "result" if event["status"] == "error" => {
                    return Err(failure(&event["error"]["message"]));
                }
                "result" => {}
                _ => self.open = false,
            },
            Client::Copilot => match kind {
                "assistant.message" => self.whole(event["data"]["content"].as_str()),
                "session.error" => return Err(failure(&event["data"]["message"])),
                _ => {}
            },
            Client::Opencode => match kind {
                "text" => self.whole(event["part"]["text"].as_str()),
                "error" => return Err(failure(&event["error"]["data"]["message"])),
                _ => {}
            },
            Client::Goose => match kind {
                "message" if event["message"]["role"] == "assistant" => {
                    let id = event["message"]["id"].as_str().unwrap_or_default();
                    for part in event["message"]["content"].as_array().into_iter().flatten() {
                        if part["type"] == "text" {
                            self.piece(part["text"].as_str(), Some(id));
                        } else {
                            self.open = false;
                        }
                    }
                }
                "error" => return Err(failure(&event["error"])),
                _ => self.open = false,
            },
        }
        Ok(())
    }

    /// Claude Code and Qwen Code end with an event that holds the last message.
    fn hear_result(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "result" if event["is_error"] == true || event["subtype"] != "success" => {
                let said = [
                    &event["result"],
                    &event["error"]["message"],
                    &event["subtype"],
                ];
                let said = said.into_iter().find(|said| said.is_string());
                Err(failure(said.unwrap_or(&Value::Null)))
            }
            "result" => {
                self.whole(event["result"].as_str());
                Ok(())
            }
            "assistant" if event["parent_tool_use_id"].is_null() => {
                let parts = event["message"]["content"].as_array().into_iter().flatten();
                for part in parts.filter(|part| part["type"] == "text") {
                    self.whole(part["text"].as_str());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn whole(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            text.clone_into(&mut self.text);
        }
    }

    fn piece(&mut self, text: Option<&str>, of: Option<&str>) {
        let Some(text) = text else { return };
        if !self.open || self.of.as_deref() != of {
            self.text.clear();
        }
        self.text.push_str(text);
        self.of = of.map(str::to_owned);
        self.open = true;
    }
}

fn failure(said: &Value) -> String {
    let said = said.as_str().unwrap_or("it does not say why");
    let shown: String = said
        .chars()
        .map(|character| {
            if crate::agent::reader::is_hidden(character) {
                ' '
            } else {
                character
            }
        })
        .take(300)
        .collect();
    format!("its stream ends with a failure: {shown}")
}

/// What stands in a fence, if the whole message is one: models put JSON there however they are asked.
fn unfenced(text: &str) -> &str {
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inner {
        Some(("" | "json", inner)) if !inner.contains("```") => inner.trim(),
        _ => text,
    }
}
