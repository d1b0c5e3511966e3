//! `tamis ctl ban`, `unban`, `accept`, `deny`, `bans`, `sets` and `conntrack`.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use live::answers::{
    self, BansChanged, BansList, Conntrack, ConntrackEnded, Flow, Set, Sets, SetsRestored,
};
use live::{BanAction, FlowWords, MOST_CHANGES, Place, Request};
use packet::visible::{self, plural};
use replay::read_text;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::control::{Refused, SocketArgs, answer_to};
use crate::screen;

/// Lines that are shown where `--all` is not given: they fit a screen.
const FEW: usize = 20;

/// Connections that one answer brings.
const PAGE: usize = 1024;

/// What may be asked about the access list, the sets, and connections.
#[derive(Debug, Subcommand)]
pub(crate) enum ListsCommand {
    /// Deny sources everything, from the next packet on
    Ban(Bans),
    /// Lift bans
    Unban(Bans),
    /// Have destinations accept sources again
    Accept(Bans),
    /// Have destinations accept sources no more
    Deny(Bans),
    /// What the access list says: the changes that make it of an empty one
    Bans {
        /// All of them
        #[arg(long)]
        all: bool,
    },
    /// Look at sets and change them
    #[command(subcommand)]
    Sets(SetsCommand),
    /// Look at connections and end them
    #[command(subcommand)]
    Conntrack(ConntrackCommand),
}

/// Whom, or a list of them.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Bans {
    /// ADDRESS or ADDRESS/BITS
    #[arg(conflicts_with = "file")]
    source: Option<String>,
    /// Of accept and deny: these destinations alone
    #[arg(requires = "source")]
    destination: Option<String>,
    /// One change a line, `[ban|unban|accept|deny] SOURCE [DESTINATION]`; each 10,000 are one request
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// `tamis ctl sets`.
#[derive(Debug, Subcommand)]
pub(crate) enum SetsCommand {
    /// The sets, or what one holds as `ipset save` prints it
    List {
        /// Its name
        set: Option<String>,
        /// All elements
        #[arg(long)]
        all: bool,
    },
    /// Add an element, in the words of ipset: `add SET 192.0.2.1 timeout 60`
    Add(Entry),
    /// Remove an element
    Del(Entry),
    /// Give each of two sets the other's name
    Swap {
        /// Its name
        one: String,
        /// The other's
        other: String,
    },
    /// Remove all elements
    Flush {
        /// Of this set alone
        set: Option<String>,
    },
    /// Carry out lines of `ipset restore`: add, del, swap, flush; each 10,000 are one request, done whole or not at all
    Restore {
        /// The lines
        file: PathBuf,
    },
}

/// An element of a set.
#[derive(Debug, Args)]
pub(crate) struct Entry {
    /// The set's name
    set: String,
    /// The element, and options as the set has them
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    entry: Vec<String>,
}

/// `tamis ctl conntrack`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConntrackCommand {
    /// Connections, as `conntrack -L -o extended` prints them
    List {
        #[command(flatten)]
        flows: Flows,
        /// All of them
        #[arg(long)]
        all: bool,
    },
    /// End connections
    Delete {
        #[command(flatten)]
        flows: Flows,
    },
    /// End all connections
    Flush,
}

/// Which connections, in words of conntrack(8).
#[derive(Debug, Args)]
pub(crate) struct Flows {
    /// Protocol
    #[arg(short, long = "proto", value_name = "PROTO")]
    protocol: Option<String>,
    /// Source of the original direction
    #[arg(short, long = "src", visible_alias = "orig-src", value_name = "ADDRESS[/BITS]")]
    source: Option<String>,
    /// Its destination
    #[arg(short, long = "dst", visible_alias = "orig-dst", value_name = "ADDRESS[/BITS]")]
    destination: Option<String>,
    /// Its source port
    #[arg(long, visible_alias = "orig-port-src", value_name = "PORT")]
    sport: Option<u16>,
    /// Its destination port
    #[arg(long, visible_alias = "orig-port-dst", value_name = "PORT")]
    dport: Option<u16>,
    /// Source of the reply direction
    #[arg(short, long, value_name = "ADDRESS[/BITS]")]
    reply_src: Option<String>,
    /// Its destination
    #[arg(short = 'q', long, value_name = "ADDRESS[/BITS]")]
    reply_dst: Option<String>,
    /// Mark
    #[arg(short, long, value_name = "MARK[/MASK]")]
    mark: Option<String>,
}

impl ListsCommand {
    /// Asks, as often as it takes, and prints what is answered.
    pub(super) fn run(&self, args: &SocketArgs) -> Result<ExitCode> {
        let done = match self {
            Self::Ban(bans) => bans.run(BanAction::Ban, args),
            Self::Unban(bans) => bans.run(BanAction::Unban, args),
            Self::Accept(bans) => bans.run(BanAction::Accept, args),
            Self::Deny(bans) => bans.run(BanAction::Deny, args),
            Self::Bans { all } => list_bans(*all, args),
            Self::Sets(command) => command.run(args),
            Self::Conntrack(command) => command.run(args),
        }?;
        Ok(done.map_or_else(Refused::tell, |()| ExitCode::SUCCESS))
    }
}

/// Done, or refused by the run.
type Done = Result<Result<(), Refused>>;

impl Bans {
    fn run(&self, action: BanAction, args: &SocketArgs) -> Done {
        if self.destination.is_some() && matches!(action, BanAction::Ban | BanAction::Unban) {
            bail!("a ban is for all destinations: name one with deny and accept");
        }
        let words = self.source.iter().chain(&self.destination).map(String::as_str);
        let text = match &self.file {
            Some(file) => read_text(&file.to_string_lossy())?,
            None => words.collect::<Vec<_>>().join(" "),
        };
        let request = |line, text| Request::Bans { text, action: Some(action), line };
        batches(&text, request, args, |BansChanged { changes, banned_ranges }| {
            let changes = plural(changes as u64, "change");
            let ranges = plural(banned_ranges as u64, "range");
            format!("{changes}, in force from the next packet on; banned now: {ranges}\n")
        })
    }
}

impl SetsCommand {
    fn run(&self, args: &SocketArgs) -> Done {
        let text = match self {
            Self::List { set, all } => return list_sets(set.as_deref(), *all, args),
            Self::Add(entry) => entry.line("add"),
            Self::Del(entry) => entry.line("del"),
            Self::Swap { one, other } => format!("swap {one} {other}"),
            Self::Flush { set } => format!("flush {}", set.as_deref().unwrap_or_default()),
            Self::Restore { file } => read_text(&file.to_string_lossy())?,
        };
        let request = |line, text| Request::SetsRestore { text, line };
        batches(&text, request, args, edited)
    }
}

impl Entry {
    fn line(&self, command: &str) -> String {
        let quoted = |word: &String| match word.contains(char::is_whitespace) {
            true => format!("\"{word}\""),
            false => word.clone(),
        };
        let words: Vec<String> = self.entry.iter().map(quoted).collect();
        format!("{command} {} {}", self.set, words.join(" "))
    }
}

impl ConntrackCommand {
    fn run(&self, args: &SocketArgs) -> Done {
        match self {
            Self::List { flows, all } => list_flows(&flows.words(), *all, args),
            Self::Delete { flows } => {
                let flows = flows.words();
                end(|from| Request::ConntrackDelete { flows: flows.clone(), from }, args)
            }
            Self::Flush => end(|from| Request::ConntrackFlush { from }, args),
        }
    }
}

impl Flows {
    fn words(&self) -> FlowWords {
        FlowWords {
            protocol: self.protocol.clone(),
            src: self.source.clone(),
            dst: self.destination.clone(),
            sport: self.sport,
            dport: self.dport,
            reply_src: self.reply_src.clone(),
            reply_dst: self.reply_dst.clone(),
            mark: self.mark.clone(),
        }
    }
}

/// A text in requests of as many lines as one may have.
fn batches<A: DeserializeOwned>(
    text: &str,
    request: impl Fn(usize, String) -> Request,
    args: &SocketArgs,
    told: impl Fn(A) -> String,
) -> Done {
    let lines: Vec<&str> = text.lines().collect();
    for (at, some) in lines.chunks(MOST_CHANGES).enumerate() {
        match answer_to(args, &request(at * MOST_CHANGES + 1, some.join("\n")))? {
            Ok(answer) if args.json => screen::print(&format!("{answer}\n"))?,
            Ok(answer) => screen::print(&told(answers::read(answer)?))?,
            Err(refused) => return Ok(Err(refused)),
        }
    }
    Ok(Ok(()))
}

fn edited(SetsRestored { added, deleted, flushed, swapped }: SetsRestored) -> String {
    let done = [("added", added), ("deleted", deleted), ("flushed", flushed), ("swapped", swapped)];
    let done = done.iter().filter(|(_, count)| *count != 0);
    let done: Vec<String> = done.map(|(what, count)| format!("{what} {count}")).collect();
    if done.is_empty() { "nothing to do\n".to_owned() } else { format!("{}\n", done.join(", ")) }
}

/// What the run answers, read.
fn answer<A: DeserializeOwned>(args: &SocketArgs, request: &Request) -> Result<Result<A, Refused>> {
    Ok(match answer_to(args, request)? {
        Ok(answer) => Ok(answers::read(answer)?),
        Err(refused) => Err(refused),
    })
}

fn list_bans(all: bool, args: &SocketArgs) -> Done {
    let most = if all { usize::MAX } else { FEW };
    let mut whole = BansList::default();
    loop {
        let left = most - whole.changes.len();
        let from = whole.next.unwrap_or_default();
        let request = Request::BansList { from, most: MOST_CHANGES.min(left) };
        let more: BansList = match answer(args, &request)? {
            Ok(more) => more,
            Err(refused) => return Ok(Err(refused)),
        };
        let changes = [whole.changes, more.changes].concat();
        whole = BansList { changes, ..more };
        if whole.next.is_none() || whole.changes.len() >= most {
            break;
        }
    }
    if args.json {
        screen::json(&answers::json(&whole))?;
        return Ok(Ok(()));
    }
    let BansList { count, changes, .. } = whole;
    if changes.is_empty() {
        screen::print("nobody is banned, and everybody accepts everybody\n")?;
        return Ok(Ok(()));
    }
    let line = |line: &String| format!("{}\n", visible::word(line));
    screen::print(&changes.iter().map(line).collect::<String>())?;
    let shown = changes.len();
    let more = if shown < count { ": --all lists all" } else { "" };
    screen::tell(&format!("{shown} of {count}{more}"));
    Ok(Ok(()))
}

fn list_sets(set: Option<&str>, all: bool, args: &SocketArgs) -> Done {
    let most = match (set, all) {
        (_, true) => usize::MAX,
        (Some(_), false) => FEW,
        (None, false) => 0,
    };
    let answer = match answer_to(args, &Request::SetsList { set: set.map(str::to_owned), most })? {
        Ok(answer) => answer,
        Err(refused) => return Ok(Err(refused)),
    };
    if args.json {
        screen::json(&answer)?;
        return Ok(Ok(()));
    }
    let Sets { sets } = answers::read(answer)?;
    let text: String = match set.is_some() || all {
        true => sets.iter().map(saved).collect(),
        false => sets.iter().map(head).collect(),
    };
    screen::print(if text.is_empty() { "the run has no sets\n" } else { &text })?;
    Ok(Ok(()))
}

/// A line about a set.
fn head(Set { name, kind, entries, .. }: &Set) -> String {
    format!("{:<31} {:<16} {entries:>10}\n", visible::word(name), visible::word(kind))
}

/// A set as it is saved, as far as the answer has it.
fn saved(Set { name, create, entries, members, .. }: &Set) -> String {
    let name = visible::word(name);
    let mut text = format!("create {name} {}\n", visible::word(create));
    for member in members {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "add {name} {}", visible::word(member));
    }
    if members.len() < *entries {
        let _ = writeln!(text, "# {} of {entries}: --all lists all", members.len());
    }
    text
}

fn list_flows(flows: &FlowWords, all: bool, args: &SocketArgs) -> Done {
    let (mut whole, mut listed) = (Conntrack::default(), 0);
    let most = if all { usize::MAX } else { FEW };
    loop {
        let (from, page) = (whole.next, PAGE.min(most - listed));
        let request = Request::ConntrackList { flows: flows.clone(), from, most: page };
        let mut more: Conntrack = match answer(args, &request)? {
            Ok(more) => more,
            Err(refused) => return Ok(Err(refused)),
        };
        if from.is_none() {
            whole.count = more.count;
        }
        more.flows.truncate(most - listed);
        listed += more.flows.len();
        match args.json {
            true => whole.flows.append(&mut more.flows),
            false => screen::print(&more.flows.iter().map(flow_line).collect::<String>())?,
        }
        whole.next = more.next;
        if whole.next.is_none() || listed == most {
            break;
        }
    }
    let Conntrack { count, next, .. } = whole;
    match next {
        _ if args.json => screen::json(&answers::json(&whole))?,
        Some(_) => screen::tell(&format!("{listed} of {count}: --all lists all")),
        None => screen::tell(&format!("{listed} of {count}")),
    }
    Ok(Ok(()))
}

fn flow_line(flow: &Flow) -> String {
    format!("{}\n", visible::word(&flow.text))
}

fn end(request: impl Fn(Option<Place>) -> Request, args: &SocketArgs) -> Done {
    let (mut from, mut ended) = (None, 0);
    loop {
        let more: ConntrackEnded = match answer(args, &request(from))? {
            Ok(more) => more,
            Err(refused) => return Ok(Err(refused)),
        };
        ended += more.ended;
        from = more.next;
        if from.is_none() {
            break;
        }
    }
    let text = match args.json {
        true => format!("{}\n", json!({ "schema": "tamis.conntrack_ended/1", "ended": ended })),
        false => format!("ended: {}\n", plural(ended as u64, "connection")),
    };
    screen::print(&text)?;
    Ok(Ok(()))
}
