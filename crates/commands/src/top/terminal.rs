//! `tamis top` on a terminal, until somebody types `q`.
//!
//! Contract: the run is asked on a thread of its own, so a key is never late, however long an answer takes. The terminal
//! is as it was before, however it ends, a panic included.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::figures::Figures;
use super::reading::Reading;
use super::view::{Shown, draw};
use crate::interrupt;

/// How often keys and answers are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Shows a run, asked this often.
pub(super) fn watch(
    socket: PathBuf,
    every: Duration,
    silence: impl Fn(&io::Error) -> String,
) -> Result<()> {
    let stop = interrupt::raised()?;
    let (to, readings) = sync_channel(1);
    thread::Builder::new()
        .name("readings".to_owned())
        .spawn(move || read(&socket, every, &to))
        .context("no thread can be had")?;
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let shown = show(&mut terminal, &readings, &stop, silence);
    ratatui::restore();
    shown.context("the terminal")
}

/// Asks again and again, until nobody wants to know.
fn read(socket: &std::path::Path, every: Duration, to: &SyncSender<io::Result<Reading>>) {
    while to.send(Reading::take(socket)).is_ok() {
        thread::sleep(every);
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    readings: &Receiver<io::Result<Reading>>,
    stop: &Arc<AtomicBool>,
    silence: impl Fn(&io::Error) -> String,
) -> io::Result<()> {
    let mut shown = Shown::default();
    let mut before: Option<Reading> = None;
    while !stop.load(Ordering::Relaxed) {
        match readings.try_recv() {
            Ok(_) if shown.paused => {}
            Ok(Ok(now)) => {
                shown.figures = Some(Figures::of(&now, before.as_ref()));
                before = Some(now);
            }
            Ok(Err(error)) => {
                (shown.figures, shown.silence, before) = (None, silence(&error), None)
            }
            Err(_) => {}
        }
        terminal.draw(|frame| draw(frame, &shown))?;
        if event::poll(LOOK)? && is_end(&event::read()?, &mut shown) {
            return Ok(());
        }
    }
    Ok(())
}

/// What a key does; whether it ends all.
fn is_end(event: &Event, shown: &mut Shown) -> bool {
    let Event::Key(key) = event else { return false };
    if key.kind != KeyEventKind::Press {
        return false;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Char('t') => shown.totals = !shown.totals,
        KeyCode::Char('p' | ' ') => shown.paused = !shown.paused,
        _ => {}
    }
    false
}
