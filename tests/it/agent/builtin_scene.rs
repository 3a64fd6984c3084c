//! A tree, a gate that remembers, and a model that says what a test wants.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::agent::builtin::{Budget, BuiltinCoder, BuiltinSettings, PATIENCE, Programs};
use caretaker::agent::model::{
    Answer, Class, Conversation, Finish, LanguageModel, ModelError, ModelTurn, ToolCall,
    ToolResult, Turn, Usage,
};
use caretaker::agent::{
    AgentSession, Coder as _, CoderError, CoderTask, Diagnosis, FixSummary, Permission,
    SessionReport, ToolGuard,
};
use caretaker::sandbox::{Mode, Sandbox};
use serde_json::{Value, json};

use super::task;

/// Says no to what a test wants, and remembers what it was asked.
#[derive(Default)]
pub(super) struct Gate {
    pub(super) asked: Mutex<Vec<(String, Value)>>,
    pub(super) ends_asked: Mutex<u32>,
    /// Tools that are refused.
    pub(super) refused: Vec<&'static str>,
    /// How often the end is refused.
    pub(super) refused_ends: u32,
}

#[async_trait]
impl ToolGuard for Gate {
    async fn before_call(&self, tool: &str, arguments: &Value) -> Permission {
        let mut asked = self.asked.lock().unwrap();
        asked.push((tool.to_owned(), arguments.clone()));
        if self.refused.contains(&tool) {
            return Permission::Refused("outside of what this session may do".to_owned());
        }
        Permission::Granted
    }

    async fn before_end(&self) -> Permission {
        let mut asked = self.ends_asked.lock().unwrap();
        *asked += 1;
        if *asked <= self.refused_ends {
            return Permission::Refused("the check unit is red".to_owned());
        }
        Permission::Granted
    }
}

impl Gate {
    pub(super) fn tools(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(tool, _)| tool.clone()).collect()
    }
}

/// Says its answers in order, the last one for ever, and remembers what it was told.
pub(super) struct SaidModel {
    answers: Mutex<VecDeque<Result<Answer, Class>>>,
    pub(super) told: Mutex<Vec<Conversation>>,
}

impl SaidModel {
    pub(super) fn new(answers: Vec<Result<Answer, Class>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into()),
            told: Mutex::default(),
        })
    }

    pub(super) fn calling(calls: &[(&str, Value)]) -> Arc<Self> {
        let calls = calls.iter().cloned();
        Self::new(calls.map(|call| Ok(answer(&[call]))).collect())
    }

    /// What the calls of the turn before its `number`th request came to.
    pub(super) fn results(&self, number: usize) -> Vec<ToolResult> {
        let told = self.told.lock().unwrap();
        match told[number].turns.last() {
            Some(Turn::Results(results)) => results.clone(),
            other => panic!("{other:?}"),
        }
    }
}

#[async_trait]
impl LanguageModel for SaidModel {
    fn name(&self) -> &'static str {
        "said:model"
    }

    async fn ask(&self, conversation: &Conversation) -> Result<Answer, ModelError> {
        self.told.lock().unwrap().push(conversation.clone());
        let mut answers = self.answers.lock().unwrap();
        let next = if answers.len() > 1 {
            answers.pop_front().unwrap()
        } else {
            answers[0].clone()
        };
        next.map_err(|class| ModelError {
            model: "said:model".to_owned(),
            class,
            detail: "it is failing".to_owned(),
        })
    }
}

/// An answer that calls tools, of 10 and 5 tokens.
pub(super) fn answer(calls: &[(&str, Value)]) -> Answer {
    let calls = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| ToolCall {
            id: format!("c{index}"),
            name: (*name).to_owned(),
            arguments: arguments.clone(),
        });
    Answer {
        turn: ModelTurn {
            text: String::new(),
            calls: calls.collect(),
            native: None,
        },
        finish: Finish::Complete,
        usage: Some(Usage {
            input: 10,
            output: 5,
        }),
    }
}

pub(super) fn submit_fix() -> (&'static str, Value) {
    (
        "submit_fix",
        json!({"title": "Add up", "summary": "Removed the one."}),
    )
}

pub(super) fn submit_diagnosis() -> (&'static str, Value) {
    (
        "submit_diagnosis",
        json!({"cause": "off by one", "files": ["src/lib.rs", "tests/new.rs"], "confidence": 800, "summary": "It adds one."}),
    )
}

/// A tree with `src/lib.rs` in it, beside what lies outside.
pub(super) struct Scene {
    place: tempfile::TempDir,
    pub(super) gate: Arc<Gate>,
    pub(super) session: AgentSession,
    pub(super) budget: Budget,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self::with(Gate::default())
    }

    pub(super) fn with(gate: Gate) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("tree/src")).unwrap();
        std::fs::create_dir(place.path().join("outside")).unwrap();
        std::fs::write(place.path().join("tree/src/lib.rs"), "a + b + 1\n").unwrap();
        std::fs::write(place.path().join("outside/secret"), "the secret\n").unwrap();
        let gate = Arc::new(gate);
        let guard: Arc<dyn ToolGuard> = Arc::<Gate>::clone(&gate);
        Self {
            session: AgentSession::new("s-1".to_owned(), guard, PathBuf::from("/nowhere")),
            place,
            gate,
            budget: Budget {
                requests: 20,
                tool_calls: 50,
                tokens: 100_000,
                money: None,
                wall: Duration::from_mins(2),
            },
        }
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.place.path().join("tree")
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.place.path().join("outside")
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.tree().join(name)).unwrap()
    }

    pub(super) async fn coder(&self, model: Arc<dyn LanguageModel>) -> BuiltinCoder {
        let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
        let sandbox = Sandbox::detect(Mode::Auto, launcher).await.unwrap();
        let mut patience = PATIENCE;
        patience.first_pause = Duration::from_millis(1);
        let settings = BuiltinSettings {
            budget: self.budget,
            patience,
            programs: Programs::default(),
        };
        BuiltinCoder::new(model, Arc::new(sandbox), settings, || 0)
    }

    pub(super) async fn fix(
        &self,
        model: Arc<dyn LanguageModel>,
    ) -> Result<FixSummary, CoderError> {
        let coder = self.coder(model).await;
        coder
            .fix(&fix_task(), &self.tree(), Some(&self.session))
            .await
    }

    pub(super) async fn diagnose(
        &self,
        model: Arc<dyn LanguageModel>,
    ) -> Result<Diagnosis, CoderError> {
        let coder = self.coder(model).await;
        coder
            .diagnose(&task(), &self.tree(), Some(&self.session))
            .await
    }

    pub(super) fn report(&self) -> SessionReport {
        self.session.reported().expect("nothing was reported")
    }

    /// What one call of a fix comes to: its text, and whether it failed.
    pub(super) async fn one(&self, tool: &str, arguments: Value) -> (String, bool) {
        let model = SaidModel::calling(&[(tool, arguments), submit_fix()]);
        self.fix(Arc::<SaidModel>::clone(&model)).await.unwrap();
        let result = model.results(1).remove(0);
        (result.text, result.failed)
    }
}

pub(super) fn fix_task() -> CoderTask {
    let mut task = task();
    task.diagnosis = serde_json::from_value(submit_diagnosis().1).ok();
    task
}

/// How a failed coder ended, in words.
pub(super) fn status(ended: &CoderError) -> &str {
    match ended {
        CoderError::Failed { status, .. } => status,
        other => panic!("{other:?}"),
    }
}

pub(super) fn link(target: &Path, name: &Path) {
    std::os::unix::fs::symlink(target, name).unwrap();
}
