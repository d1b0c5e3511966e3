//! `tamis parent`, which `tamis run` starts for itself: keeps what opening devices takes, and does what it is asked.
//!
//! Contract: what it may be asked for is fixed at its start, and anything else is refused. It ends when its socket, which
//! is its standard input, is closed at the other end, or over a message that is no request. Signals that end a run are
//! not meant for it: the run still needs it then.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use live::config::Reopened;
use live::is_like;
use pktio::{InProcess, Opener};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::message::{self, Answer, Request};
use crate::confine;

/// Bytes that no request has.
const TOO_LONG: usize = 64;

/// `tamis parent`.
#[derive(Debug, clap::Args)]
pub(crate) struct ParentArgs {
    /// Packet sockets are opened
    #[arg(long)]
    pub packet_sockets: bool,
    /// Queues of this TUN device are opened
    #[arg(long, value_name = "DEVICE")]
    pub tun: Vec<String>,
    /// Sockets of AF_XDP are opened for this interface, or those of this pattern
    #[arg(long, value_name = "DEVICE")]
    pub xdp: Vec<String>,
    /// This interface, or those of this pattern, are taken up and down
    #[arg(long, value_name = "DEVICE")]
    pub link: Vec<String>,
    /// It does not start unless it gives up all that it does not need
    #[arg(long)]
    pub required: bool,
}

/// Does what it is asked until nobody is there to ask.
pub(crate) fn run(args: &ParentArgs) -> Result<ExitCode> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // Nobody looks: what matters is that it does not end this process.
        flag::register(signal, Arc::new(AtomicBool::new(false))).context("signals")?;
    }
    let lacking = confine::keep_opening(!args.tun.is_empty(), !args.xdp.is_empty());
    if let (true, Some(first)) = (args.required, lacking.first()) {
        bail!("[privileges] drop = \"required\": of the process that opens devices again: {first}");
    }
    let may = Reopened {
        packet_sockets: args.packet_sockets,
        tuns: args.tun.clone(),
        xdps: args.xdp.clone(),
        links: args.link.clone(),
    };
    let socket = io::stdin();
    // That it is there.
    message::answer(&socket, &Ok((Vec::new(), String::new()))).context("standard input")?;
    let mut bytes = [0; TOO_LONG];
    loop {
        let (length, _) = message::receive(&socket, &mut bytes).context("standard input")?;
        if length == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let request = Request::parse(&bytes[..length]).context("no request")?;
        if message::answer(&socket, &done(request, &may, &InProcess)).is_err() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Does what is asked for, if it may be.
fn done(request: Request<'_>, may: &Reopened, opener: &dyn Opener) -> Answer {
    let done = match request {
        _ if !is_allowed(request, may) => return Err("not in the configuration".to_owned()),
        Request::PacketSocket => opener.packet_socket().map(|socket| (vec![socket], String::new())),
        Request::TunQueue { name, is_only } => {
            opener.tun_queue(name, is_only).map(|(queue, name)| (vec![queue], name))
        }
        Request::XdpSockets { name, mode, queues, channels } => {
            opener.xdp_sockets(name, mode, queues, channels).map(message::of_sockets)
        }
        Request::SetUp { name, is_up } => {
            opener.set_up(name, is_up).map(|()| (Vec::new(), String::new()))
        }
    };
    done.map_err(|error| error.to_string())
}

fn is_allowed(request: Request<'_>, may: &Reopened) -> bool {
    match request {
        Request::PacketSocket => may.packet_sockets,
        Request::TunQueue { name, .. } => may.tuns.iter().any(|tun| is_numbered(name, tun)),
        Request::XdpSockets { name, .. } => may.xdps.iter().any(|xdp| is_like(name, xdp)),
        Request::SetUp { name, .. } => may.links.iter().any(|link| is_like(name, link)),
    }
}

/// Whether a TUN device has this name, or a name that the kernel makes of it: `%d` becomes a number.
fn is_numbered(name: &str, asked: &str) -> bool {
    let number = asked.split_once("%d").and_then(|(before, after)| {
        name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after))
    });
    let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
    name == asked || number.is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pktio::{XdpMode, XdpSockets};
    use std::os::fd::OwnedFd;
    use std::sync::Mutex;

    /// Keeps what it was asked for.
    #[derive(Debug, Default)]
    struct Model(Mutex<Vec<String>>);

    impl Opener for Model {
        fn packet_socket(&self) -> io::Result<OwnedFd> {
            self.0.lock().unwrap().push("socket".to_owned());
            Err(io::ErrorKind::Other.into())
        }
        fn tun_queue(&self, name: &str, is_only: bool) -> io::Result<(OwnedFd, String)> {
            self.0.lock().unwrap().push(format!("{name} {is_only}"));
            Err(io::ErrorKind::Other.into())
        }
        fn xdp_sockets(
            &self,
            name: &str,
            mode: XdpMode,
            queues: u16,
            channels: u32,
        ) -> io::Result<XdpSockets> {
            self.0.lock().unwrap().push(format!("{name} {mode:?} {queues} {channels}"));
            Err(io::ErrorKind::Other.into())
        }
        fn set_up(&self, name: &str, is_up: bool) -> io::Result<()> {
            self.0.lock().unwrap().push(format!("{name} {is_up}"));
            Ok(())
        }
    }

    #[test]
    fn what_the_configuration_does_not_have_is_refused() {
        let may = Reopened {
            packet_sockets: false,
            tuns: vec!["t0".to_owned(), "n%dx".to_owned()],
            xdps: vec!["eth2".to_owned(), "x?".to_owned()],
            links: vec!["eth1".to_owned(), "veth*".to_owned()],
        };
        let model = Model::default();
        let tun = |name| Request::TunQueue { name, is_only: true };
        let link = |name| Request::SetUp { name, is_up: false };
        let mode = XdpMode::Generic;
        let xdp = |name| Request::XdpSockets { name, mode, queues: 1, channels: 2 };
        for refused in [
            Request::PacketSocket,
            tun("t1"),
            tun("t00"),
            tun("nax"),
            tun("n1/2x"),
            tun("eth1"),
            link("eth1/7"),
            link("eth0"),
            link("eth11"),
            link("t0"),
            link("eth2"),
            xdp("eth1"),
            xdp("x12"),
        ] {
            let told = done(refused, &may, &model).unwrap_err();
            assert_eq!(told, "not in the configuration", "{refused:?}");
        }
        assert!(model.0.lock().unwrap().is_empty());
        for allowed in [tun("t0"), tun("n%dx"), tun("n12x"), link("eth1"), link("veth7"), xdp("x1")]
        {
            let _ = done(allowed, &may, &model);
        }
        let asked = model.0.into_inner().unwrap();
        assert_eq!(
            asked,
            ["t0 true", "n%dx true", "n12x true", "eth1 false", "veth7 false", "x1 Generic 1 2"]
        );
    }
}
