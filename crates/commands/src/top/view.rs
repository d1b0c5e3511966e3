//! The screen of `tamis top`: [`draw`] puts figures into a frame of any size; 80 by 24 has all of it.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Row, Table};

use super::figures::{Count, Figures, Peer, Talker, Wire, Worker};

/// Rows of wires and workers that are shown at most: the rest is for rules and talkers.
const MOST_WIRES: usize = 6;
const MOST_WORKERS: usize = 8;

/// Most peers that are shown, the busiest senders first.
const MOST_PEERS: usize = 5;

/// Columns that are used at most, but by rules: numbers far from what they are of are hard to read.
const MOST_COLUMNS: u16 = 132;

/// Columns between two lists side by side.
const BETWEEN: u16 = 2;

const TITLE: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().fg(Color::DarkGray);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// What the screen shows, and how.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// `None` while nobody answers.
    pub(super) figures: Option<Figures>,
    /// Why not.
    pub(super) silence: String,
    /// Totals, not rates.
    pub(super) totals: bool,
    pub(super) paused: bool,
    /// The screen is printed once: no keys are shown.
    pub(super) still: bool,
}

/// A column: its title, how wide it is, and whether numbers stand in it.
type Column = (&'static str, Constraint, Alignment);

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, shown: &Shown) {
    let area = frame.area();
    let [body, keys] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    match &shown.figures {
        Some(figures) => draw_figures(frame, body, figures, shown.totals),
        None => frame.render_widget(Line::styled(shown.silence.as_str(), ALARM), body),
    }
    if !shown.still {
        frame.render_widget(keys_line(shown), keys);
    }
}

fn keys_line(shown: &Shown) -> Line<'static> {
    let key = |key: &'static str, what: &'static str| [Span::styled(key, BOLD), Span::raw(what)];
    let counted = if shown.totals { " rates  " } else { " totals  " };
    let held = if shown.paused { " go on" } else { " pause" };
    [key("q", " quit  "), key("t", counted), key("p", held)].concat().into()
}

fn draw_figures(frame: &mut Frame<'_>, area: Rect, figures: &Figures, totals: bool) {
    let (wires, workers) =
        (figures.wires.len().min(MOST_WIRES), figures.workers.len().min(MOST_WORKERS));
    let rows = |count: usize| Constraint::Length(1 + count as u16);
    let peers = match figures.peers.len().min(MOST_PEERS) {
        0 => Constraint::Length(0),
        some => rows(some + 1),
    };
    let [title, notes, of_wires, of_peers, _, of_rules, _, middle, _, of_workers] =
        Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(figures.notes.len().min(3) as u16),
            rows(wires),
            peers,
            Constraint::Length(1),
            Constraint::Fill(6),
            Constraint::Length(1),
            Constraint::Fill(5),
            Constraint::Length(1),
            rows(workers),
        ])
        .areas(Rect { width: area.width.min(MOST_COLUMNS), ..area });
    let of_rules = Rect { width: area.width, ..of_rules };
    frame.render_widget(title_line(figures), title);
    let told: Vec<Line<'_>> =
        figures.notes.iter().map(|note| Line::styled(note.as_str(), ALARM)).collect();
    frame.render_widget(Text::from(told), notes);
    frame.render_widget(wires_table(figures, totals), of_wires);
    if !figures.peers.is_empty() {
        let [_, of_peers] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(of_peers);
        frame.render_widget(peers_table(&figures.peers, totals), of_peers);
    }
    frame.render_widget(rules_table(figures, totals, of_rules.width), of_rules);
    let [drops, sources, services] =
        Layout::horizontal([Constraint::Fill(5), Constraint::Fill(7), Constraint::Fill(6)])
            .spacing(BETWEEN)
            .areas(middle);
    frame.render_widget(drops_table(figures, totals), drops);
    frame.render_widget(talkers_table("SOURCE", &figures.sources), sources);
    frame.render_widget(talkers_table("SERVICE", &figures.services), services);
    frame.render_widget(workers_table(&figures.workers), of_workers);
}

fn title_line(figures: &Figures) -> Line<'static> {
    let [frames, bytes] = figures.received();
    let mut parts = vec![Span::styled("tamis", TITLE)];
    let mut part = |what: String| parts.push(Span::raw(format!("  {what}")));
    part(format!("up {}", clock(figures.uptime)));
    part(match figures.revision {
        Some(revision) => format!("revision {revision}"),
        None => format!("program {}", figures.program),
    });
    if let (Some(frames), Some(bytes)) = (frames.rate, bytes.rate) {
        part(format!("{} frames/s, {}bit/s", short(frames), apart(&short(bytes * 8.0))));
    }
    part(format!("connections {}", short(figures.connections as f64)));
    Line::from(parts)
}

fn wires_table(figures: &Figures, totals: bool) -> Table<'static> {
    let number = |title| (title, Constraint::Length(8), Alignment::Right);
    let columns: [Column; 8] = [
        ("WIRE", Constraint::Fill(1), Alignment::Left),
        number(if totals { "IN" } else { "IN/s" }),
        number(if totals { "bytes" } else { "bit/s" }),
        number(if totals { "OUT" } else { "OUT/s" }),
        number("accept"),
        number("drop"),
        number("reject"),
        number("unknown"),
    ];
    let row = |wire: &Wire| {
        let mut cells = vec![Cell::from(wire.name.clone())];
        cells.push(count(wire.received, totals, Style::new()));
        cells.push(bits(wire.bytes, totals));
        cells.push(count(wire.sent, totals, Style::new()));
        let colours = [Color::Green, Color::Red, Color::Red, Color::Yellow];
        let verdicts = wire.verdicts.iter().zip(colours);
        cells.extend(verdicts.map(|(verdict, colour)| {
            let style = if verdict.shown(totals) > 0.0 { Style::new().fg(colour) } else { DIM };
            count(*verdict, totals, style)
        }));
        cells
    };
    table(&columns, figures.wires.iter().take(MOST_WIRES).map(row))
}

fn peers_table(peers: &[Peer], totals: bool) -> Table<'static> {
    let number = |title| (title, Constraint::Length(8), Alignment::Right);
    let columns: [Column; 7] = [
        ("PEER", Constraint::Fill(1), Alignment::Left),
        number("HEARD"),
        number(if totals { "bytes in" } else { "bit/s in" }),
        number("out"),
        number("lost"),
        number("depth"),
        number("path MTU"),
    ];
    let row = |peer: &Peer| {
        let heard = match peer.heard {
            Some(seconds) => cell(format!("{} s", short(seconds))),
            None => cell("never".to_owned()).style(ALARM),
        };
        vec![
            Cell::from(peer.name.clone()),
            heard,
            bits(peer.received, totals),
            bits(peer.sent, totals),
            cell(short(peer.lost as f64)),
            cell(short(peer.depth as f64)),
            cell(peer.path_mtu.to_string()),
        ]
    };
    table(&columns, peers.iter().take(MOST_PEERS).map(row))
}

fn rules_table(figures: &Figures, totals: bool, width: u16) -> Table<'static> {
    let columns: [Column; 3] = [
        (if totals { "PACKETS" } else { "PKTS/s" }, Constraint::Length(8), Alignment::Right),
        (if totals { "bytes" } else { "bit/s" }, Constraint::Length(8), Alignment::Right),
        ("RULE", Constraint::Fill(1), Alignment::Left),
    ];
    // After two columns of eight with a space each.
    let room = usize::from(width).saturating_sub(18);
    table(
        &columns,
        figures.rules.iter().map(|rule| {
            let text = Cell::from(cut(&rule.text, room));
            vec![count(rule.packets, totals, Style::new()), bits(rule.bytes, totals), text]
        }),
    )
}

fn drops_table(figures: &Figures, totals: bool) -> Table<'static> {
    let columns: [Column; 2] = [
        ("DROPPED BY", Constraint::Fill(1), Alignment::Left),
        (if totals { "FRAMES" } else { "FRAMES/s" }, Constraint::Length(8), Alignment::Right),
    ];
    table(
        &columns,
        figures.drops.iter().map(|(reason, dropped)| {
            vec![Cell::from(reason.clone()), count(*dropped, totals, Style::new())]
        }),
    )
}

fn talkers_table(title: &'static str, talkers: &[Talker]) -> Table<'static> {
    let columns: [Column; 3] = [
        (title, Constraint::Fill(1), Alignment::Left),
        ("F/s", Constraint::Length(6), Alignment::Right),
        ("bit/s", Constraint::Length(6), Alignment::Right),
    ];
    table(
        &columns,
        talkers.iter().map(|talker| {
            let who = Cell::from(talker.who.clone());
            vec![who, cell(short(talker.frames)), cell(short(talker.bytes * 8.0))]
        }),
    )
}

fn workers_table(workers: &[Worker]) -> Table<'static> {
    let columns: [Column; 5] = [
        ("WORKER", Constraint::Length(6), Alignment::Right),
        ("STATE", Constraint::Length(6), Alignment::Left),
        ("BUSY", Constraint::Fill(1), Alignment::Left),
        ("WAITING", Constraint::Length(8), Alignment::Right),
        ("CONNECTIONS", Constraint::Length(11), Alignment::Right),
    ];
    table(
        &columns,
        workers.iter().take(MOST_WORKERS).map(|worker| {
            let style = if worker.state == "stuck" { ALARM } else { Style::new() };
            vec![
                cell(worker.number.to_string()),
                Cell::from(worker.state).style(style),
                Cell::from(worker.busy.map_or_else(String::new, bar)),
                cell(worker.waiting.to_string()),
                cell(short(worker.connections as f64)),
            ]
        }),
    )
}

fn table(columns: &[Column], rows: impl Iterator<Item = Vec<Cell<'static>>>) -> Table<'static> {
    let title = |(title, _, alignment): &Column| {
        Cell::from(Line::styled(*title, TITLE).alignment(*alignment))
    };
    let widths = columns.iter().map(|(_, width, _)| *width);
    Table::new(rows.map(Row::new), widths).header(Row::new(columns.iter().map(title)))
}

impl Count {
    /// The number that is shown: the total or the rate.
    fn shown(self, totals: bool) -> f64 {
        if totals { self.total as f64 } else { self.rate.unwrap_or_default() }
    }
}

/// A number at the right of its column.
fn cell(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

fn count(count: Count, totals: bool, style: Style) -> Cell<'static> {
    cell(short(count.shown(totals))).style(style)
}

/// Bytes: their bits in a second, or all of them.
fn bits(bytes: Count, totals: bool) -> Cell<'static> {
    cell(short(if totals { bytes.total as f64 } else { bytes.shown(false) * 8.0 }))
}

/// Three figures that tell something, and k, M, G or T for thousands.
pub(super) fn short(number: f64) -> String {
    let (mut number, mut unit) = (number, 0);
    const UNITS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    // What would be rounded to four figures has the next unit.
    while number >= 999.5 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1000.0, unit + 1);
    }
    let decimals = match () {
        () if unit == 0 => usize::from(number > 0.0 && number < 0.95),
        () if number >= 99.95 => 0,
        () if number >= 9.995 => 1,
        () => 2,
    };
    format!("{number:.decimals$}{}", UNITS[unit])
}

/// `98.1M` as `98.1 M`, for a unit to follow.
fn apart(short: &str) -> String {
    match short.find(|c: char| c.is_alphabetic()) {
        Some(at) => format!("{} {}", &short[..at], &short[at..]),
        None => format!("{short} "),
    }
}

fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match days {
        0 => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days} d {hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Cuts a text to `most` characters; an ellipsis shows that there was more.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A part of 1 in per cent, and as a bar of 20 places at most.
fn bar(part: f64) -> String {
    const PLACES: usize = 20;
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part * (PLACES * 8) as f64).round() as usize;
    let full = "█".repeat(eighths / 8);
    let bar = format!("{full}{}", EIGHTHS[eighths % 8]);
    format!("{:>3.0} % {bar}", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_figures_and_a_unit() {
        let cases = [
            (0.0, "0"),
            (0.4, "0.4"),
            (7.0, "7"),
            (7.25, "7"),
            (0.97, "1"),
            (12.6, "13"),
            (999.0, "999"),
            (999.6, "1.00k"),
            (1234.0, "1.23k"),
            (12_345.0, "12.3k"),
            (123_456.0, "123k"),
            (999_499.0, "999k"),
            (999_600.0, "1.00M"),
            (98.1e6, "98.1M"),
            (9.999e9, "10.0G"),
            (1e18, "1000P"),
        ];
        for (number, text) in cases {
            assert_eq!(short(number), text, "{number}");
        }
        assert_eq!((apart("98.1M"), apart("7")), ("98.1 M".to_owned(), "7 ".to_owned()));
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert_eq!(bar(0.0), "  0 % ");
        assert_eq!(bar(1.0), format!("100 % {}", "█".repeat(20)));
        assert_eq!(bar(0.5), format!(" 50 % {}", "█".repeat(10)));
        assert_eq!(bar(0.03), "  3 % ▋");
    }

    #[test]
    fn what_is_cut_off_is_seen_to_be() {
        let cuts = [0, 1, 3, 4, 5].map(|most| cut("äbcd", most));
        assert_eq!(cuts, ["…", "…", "äb…", "äbcd", "äbcd"]);
    }

    #[test]
    fn a_clock_has_days_once_there_is_one() {
        assert_eq!((clock(59.9), clock(3661.0)), ("0:00:59".to_owned(), "1:01:01".to_owned()));
        assert_eq!(clock(86_400.0 * 3.0 + 5.0), "3 d 0:00:05");
    }
}
