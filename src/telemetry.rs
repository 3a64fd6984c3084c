//! Logging: what a process says of itself while it runs, one line an event, on standard error.
//!
//! What is logged names incidents, projects and reasons. Secrets are kept out where events are written (errors never hold a
//! token, a password or a link); here, libraries are kept from telling more than warnings, since what they log at lower
//! levels is not ours to judge.

use std::io;
use std::str::FromStr as _;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::config::Environment;

/// The variable that says how much is logged.
const LEVEL: &str = "CARETAKER_LOG";
/// The variable that says in which form.
const FORMAT: &str = "CARETAKER_LOG_FORMAT";
/// Our own events, by where they come from.
const OURS: &str = "caretaker";

/// Why logging cannot be set up as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// The level is none.
    #[error(
        "environment variable {LEVEL}: {found:?} is no level; set it to off, error, warn, info, debug or trace"
    )]
    Level {
        /// What was found.
        found: String,
    },
    /// The form is none.
    #[error("environment variable {FORMAT}: {found:?} is no form; set it to text or json")]
    Format {
        /// What was found.
        found: String,
    },
    /// Something else logs in this process already.
    #[error("setting up logging: it is set up already; this is a fault in caretaker")]
    Twice,
}

/// The form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people. Line breaks and invisible characters of foreign text show as escapes, so that nobody's text passes
    /// for an event, and nothing is coloured.
    Text,
    /// A JSON object a line.
    Json,
}

/// How much is logged, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logging {
    /// Events of ours up to this level. Libraries never tell more than warnings.
    pub level: LevelFilter,
    /// The form.
    pub format: LogFormat,
}

impl Logging {
    /// What the environment asks for in `CARETAKER_LOG` and `CARETAKER_LOG_FORMAT`; without the first, `usual`.
    ///
    /// # Errors
    /// A variable whose value is none of those known.
    pub fn from_environment(
        environment: &Environment,
        usual: LevelFilter,
    ) -> Result<Self, TelemetryError> {
        let level = match environment.value(LEVEL) {
            None => usual,
            Some(text) => level(text).ok_or_else(|| TelemetryError::Level {
                found: text.to_owned(),
            })?,
        };
        let format = match environment.value(FORMAT) {
            None => LogFormat::Text,
            Some(text) if text.eq_ignore_ascii_case("text") => LogFormat::Text,
            Some(text) if text.eq_ignore_ascii_case("json") => LogFormat::Json,
            Some(text) => {
                return Err(TelemetryError::Format {
                    found: text.to_owned(),
                });
            }
        };
        Ok(Self { level, format })
    }

    /// Logs to standard error from now on, in the whole process.
    ///
    /// # Errors
    /// It was done before.
    pub fn install(self) -> Result<(), TelemetryError> {
        tracing::subscriber::set_global_default(self.subscriber(io::stderr))
            .map_err(|_| TelemetryError::Twice)
    }

    /// What takes events and writes them, each in one piece, to `writer`.
    pub fn subscriber<W>(self, writer: W) -> impl Subscriber + Send + Sync
    where
        W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    {
        // A log that cannot be written leaves nobody to tell.
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .log_internal_errors(false);
        let layer = match self.format {
            LogFormat::Text => layer.with_writer(Printable(writer)).boxed(),
            LogFormat::Json => layer.json().with_writer(writer).boxed(),
        };
        // Break it: give libraries our own level; at trace they write whole requests, tokens included
        // (`serve::logging::libraries_never_tell_more_than_warnings`).
        let filter = Targets::new()
            .with_target(OURS, self.level)
            .with_default(self.level.min(LevelFilter::WARN));
        tracing_subscriber::registry().with(layer).with(filter)
    }
}

/// A level by its name. Numbers, which the library would take too, are nothing a person remembers.
fn level(text: &str) -> Option<LevelFilter> {
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_name.then(|| LevelFilter::from_str(text).ok()).flatten()
}

/// Makes every event one printable line.
struct Printable<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Printable<W> {
    type Writer = PrintableLine<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        PrintableLine(self.0.make_writer())
    }
}

/// Takes one event, whole and with the line break at its end: so the formatter hands them over.
struct PrintableLine<W>(W);

impl<W: io::Write> io::Write for PrintableLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let mut line = String::with_capacity(text.len());
        for character in text.strip_suffix('\n').unwrap_or(&text).chars() {
            match character {
                '\'' | '"' | '\\' => line.push(character),
                // Break it: push it as it is; a name with a line break in it then writes events of its own
                // (`serve::logging::foreign_text_stays_one_printable_line`).
                _ => line.extend(character.escape_debug()),
            }
        }
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
