//! The panel: the queue in a terminal, followed and answered.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, List, ListItem, ListState, Paragraph, Wrap};

use super::super::Verdict;
use super::Queue;
use crate::attest::text::shown;
use crate::clock::Millis;
use crate::store::{CallDecision, Resolved, ToolCall};
use crate::tool_gate::call_pattern::LONGEST_PATTERN;

/// How often the queue is read.
const READ_EVERY: Duration = Duration::from_millis(500);
/// How long a key is waited for before the screen is drawn again.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// What the panel shows.
pub(super) struct Panel {
    calls: Vec<ToolCall>,
    /// None after the call that was selected went away: a key then answers nothing until another one is chosen.
    selected: Option<usize>,
    said: String,
    /// The pattern that is being written for the selected call.
    writing: Option<String>,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Leave,
    Answer(CallDecision),
    /// Always allow what the pattern stands for that was written.
    AnswerByPattern,
}

impl Panel {
    pub(super) const fn new() -> Self {
        Self {
            calls: Vec::new(),
            selected: None,
            said: String::new(),
            writing: None,
        }
    }

    /// Takes the queue as it is now. The selection stays with its call, so that a key answers what was looked at.
    pub(super) fn take(&mut self, calls: Vec<ToolCall>) {
        let looked_at = self.selected().map(|call| call.id.clone());
        // Break it: select another call when this one is gone (`cli::calls::panel::tests::the_selection_stays_with_its_call`).
        self.selected = match &looked_at {
            Some(id) => calls.iter().position(|call| call.id == *id),
            None if self.calls.is_empty() && !calls.is_empty() => Some(0),
            None => None,
        };
        if looked_at.is_some() && self.selected.is_none() {
            self.writing = None;
            "The call that was selected is not waiting any more; select another one."
                .clone_into(&mut self.said);
        }
        self.calls = calls;
    }

    fn selected(&self) -> Option<&ToolCall> {
        self.selected.and_then(|place| self.calls.get(place))
    }

    /// What a key does to the panel, and what it asks for.
    pub(super) fn key(&mut self, key: KeyCode) -> Wish {
        if self.writing.is_some() {
            return self.write(key);
        }
        match key {
            KeyCode::Char('p') if self.selected().is_some() => self.writing = Some(String::new()),
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Leave,
            KeyCode::Down | KeyCode::Char('j') => {
                let last = self.calls.len().saturating_sub(1);
                self.selected = Some(self.selected.map_or(0, |place| place + 1).min(last));
            }
            KeyCode::Up | KeyCode::Char('k') => {
                self.selected = Some(self.selected.map_or(0, |place| place.saturating_sub(1)));
            }
            KeyCode::Char('a') => return Wish::Answer(CallDecision::Allow),
            KeyCode::Char('A') => return Wish::Answer(CallDecision::Always),
            KeyCode::Char('r') => return Wish::Answer(CallDecision::Reject),
            _ => {}
        }
        Wish::Nothing
    }

    /// What a key does while a pattern is written.
    fn write(&mut self, key: KeyCode) -> Wish {
        let Some(text) = &mut self.writing else {
            return Wish::Nothing;
        };
        match key {
            KeyCode::Esc => self.writing = None,
            KeyCode::Enter if !text.is_empty() => return Wish::AnswerByPattern,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(character) if text.len() < LONGEST_PATTERN => text.push(character),
            _ => {}
        }
        Wish::Nothing
    }

    /// The two lines at the bottom.
    fn foot(&self) -> String {
        match &self.writing {
            Some(text) => format!(
                "always allow by this pattern: {}_\nenter allow · esc back · a path like src/*.rs or docs/**, or words like cargo test *",
                shown(text)
            ),
            None => format!(
                "{}\na allow once · A always exactly this · p by a pattern · r reject · ↑↓ · q leave",
                self.said
            ),
        }
    }

    /// Draws it.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, now: Millis) {
        let [head, list, detail, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Percentage(40),
            Constraint::Min(5),
            Constraint::Length(2),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let title = match self.calls.len() {
            1 => "caretaker · 1 tool call waits".to_owned(),
            several => format!("caretaker · {several} tool calls wait"),
        };
        frame.render_widget(Paragraph::new(title).style(bold), head);
        let items: Vec<ListItem<'_>> = self
            .calls
            .iter()
            .map(|call| ListItem::new(line(call, now)))
            .collect();
        let chosen = Style::new().add_modifier(Modifier::REVERSED);
        let listed = List::new(items)
            .highlight_style(chosen)
            .block(Block::bordered().title("waiting"));
        let selected = self.selected.filter(|place| *place < self.calls.len());
        frame.render_stateful_widget(
            listed,
            list,
            &mut ListState::default().with_selected(selected),
        );
        let text = self.selected().map_or_else(String::new, details);
        let details = Paragraph::new(text)
            .wrap(Wrap { trim: false })
            .block(Block::bordered().title("call"));
        frame.render_widget(details, detail);
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }
}

fn line(call: &ToolCall, now: Millis) -> String {
    let left = (call.expires_at.0 - now.0).max(0) / 1000;
    format!(
        "{:>5} s  {}  {}",
        left,
        shown(&call.tool),
        shown(&call.session)
    )
}

fn details(call: &ToolCall) -> String {
    format!(
        "{}\ntool     {}\nsession  {}\ntask     {}\nagent    {}\nasked    {}\n\n{}",
        call.id,
        shown(&call.tool),
        shown(&call.session),
        shown(&call.task),
        shown(&call.role),
        call.created_at,
        shown(&call.arguments)
    )
}

/// Follows the queue until the person leaves. The terminal is put back however this ends.
pub(super) async fn follow(queue: &Queue) -> anyhow::Result<Verdict> {
    let mut terminal = ratatui::try_init().context("drawing on the terminal")?;
    let followed = follow_on(queue, &mut terminal).await;
    ratatui::try_restore().context("putting the terminal back")?;
    followed.map(|()| Verdict::Done)
}

async fn follow_on(queue: &Queue, terminal: &mut ratatui::DefaultTerminal) -> anyhow::Result<()> {
    let mut panel = Panel::new();
    let mut read_at: Option<Instant> = None;
    loop {
        if read_at.is_none_or(|at| at.elapsed() >= READ_EVERY) {
            panel.take(queue.approvals.pending().await?);
            read_at = Some(Instant::now());
        }
        let now = queue.approvals.now();
        terminal
            .draw(|frame| panel.draw(frame, now))
            .context("drawing on the terminal")?;
        let wish = tokio::task::block_in_place(|| pressed(&mut panel))?;
        match wish {
            Wish::Leave => return Ok(()),
            Wish::Nothing => {}
            Wish::Answer(decision) => {
                answer(queue, &mut panel, decision, None).await?;
                read_at = None;
            }
            Wish::AnswerByPattern => {
                let pattern = panel.writing.take();
                answer(queue, &mut panel, CallDecision::Always, pattern.as_deref()).await?;
                read_at = None;
            }
        }
    }
}

/// Waits a moment for a key.
fn pressed(panel: &mut Panel) -> anyhow::Result<Wish> {
    if !event::poll(DRAW_EVERY).context("waiting for a key")? {
        return Ok(Wish::Nothing);
    }
    match event::read().context("reading a key")? {
        Event::Key(key) if key.kind == KeyEventKind::Press => {
            let interrupted =
                key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            Ok(if interrupted {
                Wish::Leave
            } else {
                panel.key(key.code)
            })
        }
        _ => Ok(Wish::Nothing),
    }
}

async fn answer(
    queue: &Queue,
    panel: &mut Panel,
    decision: CallDecision,
    pattern: Option<&str>,
) -> anyhow::Result<()> {
    let Some(call) = panel.selected() else {
        return Ok(());
    };
    panel.said = match queue.answer(call, decision, None, pattern).await {
        // What was written can be mended; nothing was decided.
        Err(error) if pattern.is_some() => error.to_string(),
        Err(error) => return Err(error),
        Ok(answered) => told(&answered, decision),
    };
    Ok(())
}

fn told(answered: &Resolved, decision: CallDecision) -> String {
    match answered {
        Resolved::Done(call) => format!("{} was {}.", shown(&call.tool), super::word(decision)),
        _ => "It was resolved already, or its time is over; nothing was written.".to_owned(),
    }
}

#[cfg(test)]
mod tests;
