//! `tamis tunnel demo`: three hosts on this machine, each in a network namespace of its own, and a network between them
//! that anybody may listen at; a tunnel of this program on each, pings through it, and a port that a rule blocks.
//!
//! Contract: all it makes has this process's number in its name, and goes with it: also after an error, and Ctrl-C.

mod files;
mod world;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use packet::visible;
use rustix::process::geteuid;

use super::host::is_there;
use super::up::asked_to_end;
use crate::screen;

use world::{Knocked, World};

/// Exit code where a step did not go as it should.
const FAILED: u8 = 1;

/// The port that a rule of the office blocks, and one that none does.
pub(super) const BLOCKED: u16 = 22;
const OPEN: u16 = 80;

/// `tamis tunnel demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It needs root, for network namespaces, and iproute2 and ping(8). Nothing of it is left afterwards.
Exit codes: 0 it went as told, 1 it did not, 2 usage error, or not root.")]
pub(crate) struct DemoArgs {}

/// Shows it.
pub(crate) fn run(_: &DemoArgs) -> Result<ExitCode> {
    if !geteuid().is_root() {
        bail!("network namespaces need root: sudo tamis tunnel demo");
    }
    if let Some(program) = ["ip", "ping"].into_iter().find(|program| !is_there(program)) {
        bail!("{program}(8) is not there: it comes with iproute2, or iputils-ping");
    }
    let stop = asked_to_end()?;
    Ok(match story(&stop) {
        Ok(()) => {
            screen::print("all of it is gone again\nnext: tamis tunnel keygen --out office.key\n")?;
            ExitCode::SUCCESS
        }
        Err(error) => {
            screen::tell(&format!("tamis: {}", replay::without_numbers(&format!("{error:#}"))));
            ExitCode::from(FAILED)
        }
    })
}

/// From the first namespace to the last; between two steps it is looked whether it is to end.
fn story(stop: &AtomicBool) -> Result<()> {
    let go_on = || match stop.load(Ordering::Relaxed) {
        true => bail!("it was asked to end"),
        false => Ok(()),
    };
    title("three hosts and a network between them, each a namespace of this machine")?;
    let mut world = World::make()?;
    for host in files::HOSTS {
        go_on()?;
        title(&format!("{}: tamis tunnel up {}.toml", host.name, host.name))?;
        let said = world.up(host)?;
        show(&said)?;
    }
    for (from, to) in [(1, 0), (2, 0), (2, 1)] {
        go_on()?;
        let (from, to) = (files::HOSTS[from], files::HOSTS[to]);
        title(&format!("{}: ping {}, which is {}", from.name, to.inner, to.name))?;
        show(&world.ping(from, to)?)?;
    }
    go_on()?;
    title("office: tamis tunnel peers office.toml")?;
    show(&world.tamis(&["tunnel", "peers", &world.file("office.toml")])?)?;
    go_on()?;
    knock(&world)?;
    go_on()?;
    title("office: tamis ctl --socket office.sock drops")?;
    show(&world.tamis(&["ctl", "--socket", &world.file("office.sock"), "drops"])?)?;
    let [office, home, _] = files::HOSTS;
    let packet =
        format!("in=office out=host tcp {}:40000 > {}:{BLOCKED} syn", home.inner, office.inner);
    title(&format!("office: tamis why office.rules --path forward --packet '{packet}'"))?;
    let rules = world.file("office.rules");
    show(&world.tamis(&["why", &rules, "--path", "forward", "--packet", &packet])?)
}

/// A port that a rule blocks, and one that none does.
fn knock(world: &World) -> Result<()> {
    let [office, home, _] = files::HOSTS;
    title(&format!("office.rules has: {}", files::RULE))?;
    for (port, expected) in [(OPEN, Knocked::Answered), (BLOCKED, Knocked::Silence)] {
        let to = SocketAddr::from((office.inner, port));
        let found = world.knock(home, to)?;
        show(&format!("home: a connection to {to}: {found}\n"))?;
        if found != expected {
            bail!("a connection to {to}: expected {expected}");
        }
    }
    Ok(())
}

fn title(what: &str) -> Result<()> {
    screen::print(&format!("\n== {}\n", visible::word(what)))
}

fn show(text: &str) -> Result<()> {
    screen::print(&visible::text(text))
}
