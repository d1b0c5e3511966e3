//! `tamis tunnel up`: makes the host ready, has a process of its own move packets, and undoes it all at the end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use live::config::tunnel::TunnelSettings;
use packet::visible;
use pktio::file::{NamedBy, create_anew, read_text};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::host;
use super::place::{self, Place};
use super::{serve, settings};
use crate::run_command::notify_ready;
use crate::{interrupt, screen};

/// Exit code where something failed that is none of the input.
const FAILED: u8 = 1;

/// How often it is looked whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// How long the process may take over what has come before it ends.
const TO_END: Duration = Duration::from_secs(10);

/// `tamis tunnel up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SIGHUP has it read rules, sets and bans anew. Ctrl-C, SIGTERM and `tamis tunnel down` end it; the host is then as it was
before.
Exit codes: 0 ended, 1 the host, the device or the socket failed, 2 usage or input error.
Example: tamis tunnel up /etc/tamis/office.toml --detach")]
pub(crate) struct UpArgs {
    /// The tunnel, in TOML (docs/tunnel.md)
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// Return once it is up; what it says later is in NAME.log beside its control socket
    #[arg(long)]
    pub detach: bool,
    /// It was started by --detach.
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub detached: bool,
}

/// Brings it up, and down at the end.
pub(crate) fn run(args: &UpArgs) -> Result<ExitCode> {
    let tunnel = TunnelSettings::read(&args.config)?;
    live::check(&settings::of_run(&tunnel))?;
    if args.detach {
        return detached(&args.config, &tunnel);
    }
    let (stop, reload) = (asked_to_end(&[SIGINT, SIGTERM])?, interrupt::asked_to_reload()?);
    let ended = Place::claim(&tunnel.control).and_then(|place| {
        let ended = up(&args.config, &tunnel, [&stop, &reload]);
        if args.detached && matches!(ended, Ok(0)) {
            // Nobody needs the log of a tunnel that ended well.
            let _ = fs::remove_file(log_of(&tunnel));
        }
        drop(place);
        ended
    });
    match ended {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) => {
            screen::tell(&format!("tamis: {}", replay::without_numbers(&format!("{error:#}"))));
            Ok(ExitCode::from(FAILED))
        }
    }
}

/// A flag that signals raise. Unlike that of a run: the second one does not end it either, as much is to be undone.
pub(super) fn asked_to_end(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in signals {
        flag::register(*signal, Arc::clone(&asked)).context("signals")?;
    }
    Ok(asked)
}

/// Runs a tunnel from the first command to the last, whatever happens between them; returns the exit code.
fn up(config: &Path, tunnel: &TunnelSettings, asked: [&AtomicBool; 2]) -> Result<u8> {
    host::is_free(tunnel)?;
    let ended =
        host::hooks(tunnel, &tunnel.hooks.pre_up).and_then(|()| serving(config, tunnel, asked));
    host::last_hooks(tunnel, &tunnel.hooks.post_down);
    ended
}

/// While packets are moved.
fn serving(config: &Path, tunnel: &TunnelSettings, asked: [&AtomicBool; 2]) -> Result<u8> {
    let mut serving = match Serving::start(config)? {
        Ok(serving) => serving,
        Err(code) => return Ok(code),
    };
    let ready = host::ready(tunnel);
    let ended = ready.and_then(|host| {
        let ended = host::hooks(tunnel, &tunnel.hooks.post_up).and_then(|()| {
            screen::print(&told(tunnel))?;
            notify_ready();
            serving.wait(asked)
        });
        host::last_hooks(tunnel, &tunnel.hooks.pre_down);
        drop(host);
        ended
    });
    let code = serving.end();
    ended.map(|()| code)
}

/// Says what is up, and what to type next.
fn told(tunnel: &TunnelSettings) -> String {
    let name = &tunnel.name;
    let addresses = tunnel.addresses.iter().map(|(addr, bits)| format!("{addr}/{bits}"));
    let addresses = addresses.collect::<Vec<_>>().join(", ");
    let port = match tunnel.listen {
        0 => "any UDP port".to_owned(),
        port => format!("UDP port {port}"),
    };
    let peers = tunnel.peers.iter().map(|peer| &*peer.name).take(8).collect::<Vec<_>>().join(", ");
    let rules: Vec<String> =
        tunnel.rules.iter().map(|rules| rules.file.path.display().to_string()).collect();
    let rules = match (rules.is_empty(), &tunnel.cloud) {
        (true, Some(_)) => "the network's policy".to_owned(),
        (true, None) => "none: all packets pass".to_owned(),
        (false, Some(_)) => rules.join(", ") + ", and the network's policy",
        (false, None) => rules.join(", "),
    };
    let text = format!(
        "{name} is up: {addresses}, MTU {}, {port}\n\
         public key: {}\n\
         peers: {} ({peers})\n\
         rules: {rules}\n\
         next: tamis tunnel peers {name}, tamis watch --socket {}, tamis tunnel down {name}\n",
        tunnel.mtu,
        tunnel.key.public(),
        tunnel.peers.len(),
        tunnel.control.display(),
    );
    visible::text(&text).into_owned()
}

/// The process that moves packets.
struct Serving {
    child: Child,
}

impl Serving {
    /// Starts it, and waits until it is ready; or the exit code that it ended with, having said why.
    fn start(config: &Path) -> Result<std::result::Result<Self, u8>> {
        let mut command = Command::new(std::env::current_exe().context("this program")?);
        command.args(["tunnel", "serve"]).arg(config).process_group(0);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("tamis")?;
        let mut said = String::new();
        if let Some(out) = &mut child.stdout {
            let _ = BufReader::new(out).take(serve::READY.len() as u64).read_to_string(&mut said);
        }
        let serving = Self { child };
        Ok(if said == serve::READY { Ok(serving) } else { Err(serving.end().max(FAILED)) })
    }

    /// Waits until the serving process ends or is to end; passes SIGHUP on to it.
    fn wait(&mut self, [stop, reload]: [&AtomicBool; 2]) -> Result<()> {
        while !stop.load(Ordering::Relaxed) && self.child.try_wait()?.is_none() {
            if reload.swap(false, Ordering::Relaxed) {
                kill_process(Pid::from_child(&self.child), Signal::HUP)?;
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Makes the process end with what it has; returns its exit code.
    fn end(mut self) -> u8 {
        drop(self.child.stdin.take());
        let end = Instant::now() + TO_END;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED);
            }
            thread::sleep(LOOK / 10);
        }
        FAILED
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A process that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where what it says is written, where nobody waits for it.
fn log_of(tunnel: &TunnelSettings) -> PathBuf {
    tunnel.control.with_extension("log")
}

/// Starts it in the background, and returns when it is up, or is not to be.
fn detached(config: &Path, tunnel: &TunnelSettings) -> Result<ExitCode> {
    let path = log_of(tunnel);
    let shown = || path.display().to_string();
    place::make_folder(&tunnel.control)?;
    let log = create_anew(&path, 0o600).with_context(shown)?;
    let mut command = Command::new(std::env::current_exe().context("this program")?);
    command.args(["tunnel", "up", "--detached"]).arg(config).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().context("tamis")?;
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("tamis")?;
            said += &format!("{line}\n");
            if line.starts_with("next: ") {
                screen::print(&said)?;
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    let status = child.wait().context("tamis")?;
    let said = read_text(&path, NamedBy::Configuration).with_context(shown)?;
    said.lines().for_each(screen::tell);
    let _ = fs::remove_file(&path);
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)))
}
