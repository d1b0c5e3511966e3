//! [`run`]: one screen as text or as a picture, or a terminal that is kept up to date.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use packet::visible;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::figures::Figures;
use super::reading::Reading;
use super::view::{Shown, draw};
use super::{svg, terminal};
use crate::screen;

/// `tamis top`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// The control socket, as the run's configuration names it
    #[arg(long, value_name = "PATH", default_value = "/run/tamis/control.sock")]
    pub socket: PathBuf,
    /// Ask this often
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub delay: Duration,
    /// Print one screen as text, of what came in that time, and end
    #[arg(long)]
    pub once: bool,
    /// With --once: columns and rows of the screen
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "80x24", value_parser = size, requires = "once")]
    pub size: (u16, u16),
    /// With --once: print it as a picture, in SVG
    #[arg(long, requires = "once")]
    pub svg: bool,
}

/// Shows a run until somebody has seen enough.
pub(crate) fn run(args: &TopArgs) -> Result<ExitCode> {
    let silence = |error: &io::Error| {
        let why = replay::without_numbers(&error.to_string());
        format!("no tamis listens at {}: {why}", visible::word(&args.socket.to_string_lossy()))
    };
    if args.once {
        let screen = once(args).map_err(|error| anyhow::Error::msg(silence(&error)))?;
        screen::print(&if args.svg { svg::picture(&screen) } else { text(&screen) })?;
    } else if io::stdout().is_terminal() && io::stdin().is_terminal() {
        terminal::watch(args.socket.clone(), args.delay, silence)?;
    } else {
        bail!("expected a terminal; tamis top --once prints one screen as text");
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws one screen, of what came between two readings.
fn once(args: &TopArgs) -> io::Result<Buffer> {
    let before = Reading::take(&args.socket)?;
    thread::sleep(args.delay);
    let now = Reading::take_with_talkers(&args.socket)?;
    let figures = Some(Figures::of(&now, Some(&before)));
    Ok(drawn(&Shown { figures, still: true, ..Shown::default() }, args.size))
}

/// What a screen of this size has on it.
pub(super) fn drawn(shown: &Shown, (columns, rows): (u16, u16)) -> Buffer {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let Ok(_) = terminal.draw(|frame| draw(frame, shown));
    terminal.backend().buffer().clone()
}

/// The lines of a screen, without what is empty at their ends.
pub(super) fn text(screen: &Buffer) -> String {
    let columns = usize::from(screen.area.width).max(1);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", line.trim_end())
    };
    let lines: String = screen.content.chunks(columns).map(line).collect();
    format!("{}\n", lines.trim_end())
}

pub(super) fn seconds(text: &str) -> Result<Duration> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    Ok(Duration::from_secs_f64(seconds.context("expected 0.1 to 3600")?))
}

/// Parses a size such as `80x24`.
pub(super) fn size(text: &str) -> Result<(u16, u16)> {
    let read = |(columns, rows): (&str, &str)| Some((columns.parse().ok()?, rows.parse().ok()?));
    let size = text.split_once('x').and_then(read);
    let fits =
        |(columns, rows): &(u16, u16)| (20..=500).contains(columns) && (5..=500).contains(rows);
    size.filter(fits).context("expected 20x5 to 500x500")
}
