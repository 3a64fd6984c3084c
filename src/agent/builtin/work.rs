//! The loop of one task.

use std::path::Path;
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::budget::Ledger;
use super::tools::{self, Action, Job};
use super::tree::Tree;
use super::{BuiltinCoder, CODER, files, program, prompt, unavailable};
use crate::agent::command::answer;
use crate::agent::model::persist::{NoAnswer, persist};
use crate::agent::model::{Answer, Conversation, Finish, ToolCall, ToolResult, Turn};
use crate::agent::{AgentSession, CoderError, CoderTask, Diagnosis, FixSummary, Permission};

/// How often the gate may refuse that a fix ends.
const MOST_REFUSED_ENDS: u32 = 3;
/// How many turns in a row may call nothing.
const MOST_SILENT_TURNS: u32 = 3;
/// Most bytes of results that a conversation holds; of the oldest beyond that only the fact is kept.
const MOST_REMEMBERED: usize = 2 << 20;

/// Bytes around each part of a conversation: names of members, roles, brackets.
const FRAME: usize = 100;

/// What a task came to.
pub(super) enum Ending {
    Diagnosis(Diagnosis),
    Fix(FixSummary),
}

/// What one call came to.
enum Made {
    Told(Result<String, String>),
    Ended(Ending),
}

/// One task under way.
pub(super) struct Work<'a> {
    coder: &'a BuiltinCoder,
    job: Job,
    tree: Arc<Tree>,
    folder: &'a Path,
    session: &'a AgentSession,
    ledger: Ledger<'a>,
    conversation: Conversation,
    end: Instant,
    silent_turns: u32,
    refused_ends: u32,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        coder: &'a BuiltinCoder,
        job: Job,
        task: &CoderTask,
        folder: &'a Path,
        session: &'a AgentSession,
    ) -> Result<Self, CoderError> {
        // First of all, so that every way out of here is reported.
        let ledger = Ledger::new(session, coder.settings.budget);
        let tree = Tree::open(folder).map_err(unavailable)?;
        let first = prompt::first(job, task).map_err(unavailable)?;
        Ok(Self {
            coder,
            job,
            tree: Arc::new(tree),
            folder,
            session,
            ledger,
            conversation: Conversation {
                system: prompt::system(job),
                tools: tools::descriptions(job),
                turns: vec![Turn::Ours(first)],
            },
            end: Instant::now() + coder.settings.budget.wall,
            silent_turns: 0,
            refused_ends: 0,
        })
    }

    /// Works until the task ends, or a budget.
    pub(super) async fn run(mut self) -> Result<Ending, CoderError> {
        let (job, end) = (self.job, self.end);
        let wall = self.coder.settings.budget.wall.as_secs();
        // Break it: leave the limit out; `agent::builtin_budget::each_budget_ends_a_loop_that_never_ends`.
        timeout_at(end, self.turns())
            .await
            .unwrap_or_else(|_| Err(used_up(job, &format!("wall_seconds ({wall})"))))
    }

    async fn turns(&mut self) -> Result<Ending, CoderError> {
        loop {
            let answer = self.ask().await?;
            let calls = answer.turn.calls.clone();
            let cut = answer.finish == Finish::Cut;
            if !answer.turn.text.trim().is_empty() || !calls.is_empty() {
                self.conversation.turns.push(Turn::Model(answer.turn));
            }
            if calls.is_empty() {
                self.silent(answer.finish)?;
                continue;
            }
            self.silent_turns = 0;
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                let told = match self.call(&call, cut).await? {
                    Made::Ended(ending) => return Ok(ending),
                    Made::Told(told) => told,
                };
                results.push(ToolResult {
                    failed: told.is_err(),
                    text: told.unwrap_or_else(|why| format!("Not done: {why}")),
                    call: call.id,
                    tool: call.name,
                });
            }
            self.conversation.turns.push(Turn::Results(results));
            forget(&mut self.conversation.turns, MOST_REMEMBERED);
        }
    }

    async fn ask(&mut self) -> Result<Answer, CoderError> {
        let coder = self.coder;
        let ledger = &mut self.ledger;
        let (bytes, answer) = (size(&self.conversation), coder.model.longest_answer());
        let mut spent = None;
        let asked = persist(
            coder.model.as_ref(),
            &self.conversation,
            &coder.settings.patience,
            self.end,
            coder.random,
            || match ledger.request(bytes, answer) {
                Ok(()) => true,
                Err(budget) => {
                    spent = Some(budget);
                    false
                }
            },
        );
        match asked.await {
            Ok(answer) => {
                self.ledger.tokens(answer.usage.unwrap_or_default());
                Ok(answer)
            }
            Err(NoAnswer::Unallowed) => Err(used_up(self.job, &spent.unwrap_or_default())),
            Err(NoAnswer::Failed(error)) => Err(unavailable(error.to_string())),
        }
    }

    /// A turn without a call: it is told so, but not for ever.
    fn silent(&mut self, finish: Finish) -> Result<(), CoderError> {
        if finish == Finish::Declined {
            return Err(failed(
                self.job,
                "a refusal of the model to answer",
                "the provider's filters may have caught it; look at the incident by hand",
            ));
        }
        self.silent_turns += 1;
        if self.silent_turns > MOST_SILENT_TURNS {
            return Err(failed(
                self.job,
                "too many turns in which the model called no tool",
                "does this model call tools?",
            ));
        }
        let reminder = prompt::reminder(self.job);
        self.conversation.turns.push(Turn::Ours(reminder));
        Ok(())
    }

    /// One call, through the gate.
    async fn call(&mut self, call: &ToolCall, cut: bool) -> Result<Made, CoderError> {
        let counted = self.ledger.call();
        counted.map_err(|budget| used_up(self.job, &budget))?;
        // Break it: make calls unasked, or ask only about those that can be made
        // (`agent::builtin::a_call_that_is_refused_is_told_and_not_made`, `agent::builtin::what_cannot_be_made_is_asked_about_too`).
        let permission = self
            .session
            .guard
            .before_call(&call.name, &call.arguments)
            .await;
        if let Permission::Refused(reason) = permission {
            return Ok(Made::Told(Err(format!("refused: {reason}"))));
        }
        if cut {
            let why = "your answer was cut at its greatest length, and the call may be half; say less in one turn";
            return Ok(Made::Told(Err(why.to_owned())));
        }
        // What was judged and what is done are the same value.
        match tools::action(self.job, &call.name, &call.arguments) {
            Err(why) => Ok(Made::Told(Err(why))),
            Ok(Action::Submit(submitted)) => self.submit(&submitted).await,
            Ok(Action::Run(words)) => {
                let left = self.end.saturating_duration_since(Instant::now());
                let coder = self.coder;
                let programs = &coder.settings.programs;
                let told = program::run(&coder.sandbox, programs, self.folder, &words, left);
                Ok(Made::Told(told.await))
            }
            Ok(action) => {
                let tree = Arc::clone(&self.tree);
                let done = tokio::task::spawn_blocking(move || in_files(&tree, &action));
                let told = done.await.unwrap_or_else(|error| Err(error.to_string()));
                Ok(Made::Told(told))
            }
        }
    }

    /// The end, if the answer is one and the gate lets a fix end.
    async fn submit(&mut self, submitted: &[u8]) -> Result<Made, CoderError> {
        let ending = match self.job {
            Job::Diagnose => answer::diagnosis(submitted).map(Ending::Diagnosis),
            Job::Fix => answer::fix_summary(submitted).map(Ending::Fix),
        };
        let ending = match ending {
            Ok(ending) => ending,
            Err(why) => return Ok(Made::Told(Err(why))),
        };
        if self.job == Job::Diagnose {
            return Ok(Made::Ended(ending));
        }
        // Break it: end unasked; `agent::builtin::the_gate_can_refuse_the_end_and_is_believed_three_times`.
        match self.session.guard.before_end().await {
            Permission::Granted => Ok(Made::Ended(ending)),
            Permission::Refused(reason) => {
                self.refused_ends += 1;
                if self.refused_ends >= MOST_REFUSED_ENDS {
                    return Err(failed(
                        self.job,
                        "a fix that the gate did not let end",
                        "its record says why; look at the incident by hand",
                    ));
                }
                Ok(Made::Told(Err(format!(
                    "the task cannot end yet: {reason}"
                ))))
            }
        }
    }
}

fn in_files(tree: &Tree, action: &Action) -> Result<String, String> {
    match action {
        Action::List(path) => files::list(tree, path.as_ref()),
        Action::Read {
            path,
            first_line,
            lines,
        } => files::read(tree, path, *first_line, *lines),
        Action::Search { text, path } => files::search(tree, path.as_ref(), text),
        Action::Replace { path, old, new } => files::replace(tree, path, old, new),
        Action::Write { path, content } => files::write(tree, path, content),
        Action::Delete(path) => files::delete(tree, path),
        Action::Run(_) | Action::Submit(_) => Err("this is no call about files".to_owned()),
    }
}

/// Bytes of all that a request says, about as the wire has them.
fn size(conversation: &Conversation) -> u64 {
    let tools = conversation
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len());
    let turns = conversation.turns.iter().map(|turn| match turn {
        Turn::Ours(text) => text.len(),
        Turn::Model(turn) => {
            let calls = turn.calls.iter();
            let calls = calls.map(|call| {
                call.id.len() + call.name.len() + call.arguments.to_string().len() + FRAME
            });
            turn.text.len() + calls.sum::<usize>()
        }
        Turn::Results(results) => results
            .iter()
            .map(|result| result.call.len() + result.tool.len() + result.text.len() + FRAME)
            .sum(),
    });
    let framed = tools.chain(turns).map(|bytes| bytes + FRAME);
    (conversation.system.len() + framed.sum::<usize>()) as u64
}

/// Leaves out the oldest results beyond so many bytes: every request sends all of them again.
fn forget(turns: &mut [Turn], most: usize) {
    let mut kept = 0_usize;
    for turn in turns.iter_mut().rev() {
        let Turn::Results(results) = turn else {
            continue;
        };
        for result in results.iter_mut().rev() {
            kept = kept.saturating_add(result.text.len());
            if kept > most {
                "(left out: it is long ago; call again if it is needed)"
                    .clone_into(&mut result.text);
            }
        }
    }
}

fn failed(job: Job, status: &str, mend: &str) -> CoderError {
    CoderError::Failed {
        coder: CODER.to_owned(),
        task: job.name(),
        status: status.to_owned(),
        stderr: mend.to_owned(),
    }
}

fn used_up(job: Job, budget: &str) -> CoderError {
    let name = budget.split(' ').next().unwrap_or_default();
    failed(
        job,
        &format!("its budget of {budget} used up"),
        &format!("raise agent.budget.{name}, if its record shows that it was on the way"),
    )
}
