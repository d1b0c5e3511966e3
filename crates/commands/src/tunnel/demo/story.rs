//! [`run`]: the steps of the demo, from the first namespace to the last.

use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use rustix::process::geteuid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::show::{show, title};
use super::world::{Knocked, World, own_path, tamis};
use super::{cloud, files};
use crate::screen;
use crate::tunnel::host::is_there;
use crate::tunnel::up::asked_to_end;

/// Exit code where a step did not go as it should.
const FAILED: u8 = 1;

/// A port that a rule of the office blocks, and a port that no rule blocks.
const BLOCKED: u16 = 22;

const OPEN: u16 = 80;

/// `tamis tunnel demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It needs root, for network namespaces, and iproute2 and ping(8). Nothing of it is left afterwards.
Exit codes: 0 it went as told, 1 it did not, 2 usage error, or not root.")]
pub(crate) struct DemoArgs {
    /// Nodes behind two routers find each other by name, on a cloud (docs/cloud.md): a ping, a name that is denied, a node
    /// that is revoked. It needs tamis-cloud and nft(8), too
    #[arg(long)]
    pub cloud: bool,
}

/// Shows it.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    if !geteuid().is_root() {
        bail!("network namespaces need root: sudo tamis tunnel demo");
    }
    if let Some(program) = ["ip", "ping"].into_iter().find(|program| !is_there(program)) {
        bail!("{program}(8) is not there: it comes with iproute2, or iputils-ping");
    }
    if args.cloud {
        cloud::needs()?;
    }
    let stop = asked_to_end(&[SIGINT, SIGTERM, SIGHUP])?;
    let go_on = || match stop.load(Ordering::Relaxed) {
        true => bail!("it was asked to end"),
        false => Ok(()),
    };
    let (played, next) = match args.cloud {
        true => (cloud::story(&go_on), "docs/cloud.md, \"Ten lines\""),
        false => (story(&go_on), "tamis tunnel keygen --out office.key"),
    };
    Ok(match played {
        Ok(()) => {
            screen::print(&format!("all of it is gone again\nnext: {next}\n"))?;
            ExitCode::SUCCESS
        }
        Err(error) => {
            screen::tell(&format!("tamis: {}", replay::without_numbers(&format!("{error:#}"))));
            ExitCode::from(FAILED)
        }
    })
}

/// Plays the demo from the first namespace to the last; `go_on`, between two steps, fails where it is to end.
fn story(go_on: &dyn Fn() -> Result<()>) -> Result<()> {
    title("three hosts and a network between them, each a namespace of this machine")?;
    let mut world = hosts()?;
    for host in files::HOSTS {
        go_on()?;
        title(&format!("{}: tamis tunnel up {}.toml", host.name, host.name))?;
        let said = world.up(host.name)?;
        show(&said)?;
    }
    for (from, to) in [(1, 0), (2, 0), (2, 1)] {
        go_on()?;
        let (from, to) = (files::HOSTS[from], files::HOSTS[to]);
        title(&format!("{}: ping {}, which is {}", from.name, to.inner, to.name))?;
        show(&world.ping(world.command(from.name, "ping"), &to.inner.to_string())?)?;
    }
    go_on()?;
    title("office: tamis tunnel peers office.toml")?;
    show(&tamis(Command::new(own_path()?), &["tunnel", "peers", &world.file("office.toml")])?)?;
    go_on()?;
    knock(&world)?;
    go_on()?;
    title("office: tamis ctl --socket office.sock drops")?;
    show(&tamis(
        Command::new(own_path()?),
        &["ctl", "--socket", &world.file("office.sock"), "drops"],
    )?)?;
    let [office, home, _] = files::HOSTS;
    let packet =
        format!("in=office out=host tcp {}:40000 > {}:{BLOCKED} syn", home.inner, office.inner);
    title(&format!("office: tamis why office.rules --path forward --packet '{packet}'"))?;
    let rules = world.file("office.rules");
    show(&tamis(
        Command::new(own_path()?),
        &["why", &rules, "--path", "forward", "--packet", &packet],
    )?)
}

/// Hosts that reach each other, and their files.
fn hosts() -> Result<World> {
    let mut world = World::new()?;
    files::write(&world)?;
    world.add_network("internet")?;
    for host in files::HOSTS {
        world.add(host.name)?;
        world.connect(host.name, ("eth0", &format!("{}/24", host.outer)), "internet")?;
    }
    Ok(world)
}

/// Knocks at a port that no rule blocks, and at a port that a rule blocks.
fn knock(world: &World) -> Result<()> {
    let [office, home, _] = files::HOSTS;
    title(&format!("office.rules has: {}", files::RULE))?;
    for (port, expected) in [(OPEN, Knocked::Answered), (BLOCKED, Knocked::Silence)] {
        let to = SocketAddr::from((office.inner, port));
        let found = world.knock(home.name, to)?;
        show(&format!("home: a connection to {to}: {found}\n"))?;
        if found != expected {
            bail!("a connection to {to}: expected {expected}");
        }
    }
    Ok(())
}
