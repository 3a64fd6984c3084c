//! GitHub's own description of its API, as an oracle for the forge's answers.

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::Answer;
use crate::support::corpus;

/// GitHub's description with its known mistakes mended.
pub(crate) struct Description {
    whole: Value,
}

impl Description {
    /// `None`, after one loud line, where the shared data is absent.
    pub(crate) fn read() -> Option<Self> {
        let mut whole: Value =
            serde_json::from_slice(&corpus("github/openapi-subset.json")?).unwrap();
        let errata: Value = serde_json::from_slice(&corpus("github/schema-errata.json")?).unwrap();
        for erratum in errata["errata"].as_array().unwrap() {
            let pointer = erratum["pointer"].as_str().unwrap();
            let Some(target) = whole.pointer_mut(pointer) else {
                continue;
            };
            match (&erratum["fix"], target) {
                (Value::Object(fix), Value::Object(target)) => target.extend(fix.clone()),
                (Value::String(fix), Value::Array(required)) => {
                    let dropped = fix.strip_prefix("drop ").unwrap();
                    required.retain(|name| name != dropped);
                }
                _ => {}
            }
        }
        Some(Self { whole })
    }

    /// The description's template for a path below a repository.
    fn template(&self, path: &str) -> String {
        let parts: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
        let fits = |template: &&String| {
            let words: Vec<&str> = template.split('/').collect();
            words.len() == parts.len()
                && words
                    .iter()
                    .zip(&parts)
                    .all(|(word, part)| word.starts_with('{') || word == part)
        };
        let mut templates: Vec<&String> = self.whole["paths"]
            .as_object()
            .unwrap()
            .keys()
            .filter(fits)
            .collect();
        // The most literal one is meant.
        templates.sort_by_key(|template| template.matches('{').count());
        let template = templates.first();
        (*template.unwrap_or_else(|| panic!("{path} is not described"))).clone()
    }

    /// Fails unless the status is documented and the body fits its schema.
    pub(crate) fn check(&self, method: &Method, path: &str, answer: &Answer) -> String {
        let template = self.template(path);
        let operation = &self.whole["paths"][&template][method.as_str().to_lowercase()];
        let mut documented = &operation["responses"][answer.status.to_string()];
        if let Some(reference) = documented["$ref"].as_str() {
            documented = self
                .whole
                .pointer(reference.trim_start_matches('#'))
                .unwrap();
        }
        assert!(
            documented.is_object(),
            "{method} {template} answers {}, which is not documented",
            answer.status
        );
        let schema = &documented["content"]["application/json"]["schema"];
        if schema.is_null() {
            assert!(
                answer.body.is_null() || answer.status >= 400,
                "{method} {template}: {} has a body",
                answer.status
            );
        } else {
            let validator = self.validator(schema);
            let errors: Vec<String> = validator
                .iter_errors(&answer.body)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(
                errors.is_empty(),
                "{method} {path} ({}):\n{}",
                answer.status,
                errors.join("\n")
            );
        }
        format!("{method} {template} {}", answer.status)
    }

    pub(crate) fn validator(&self, schema: &Value) -> Validator {
        let whole = json!({"allOf": [schema], "components": self.whole["components"]});
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(&whole)
            .unwrap()
    }
}
