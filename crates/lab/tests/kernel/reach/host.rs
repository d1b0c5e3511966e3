//! A host of `fixtures/reach` in a namespace: its rules, what `tamis collect` would print of it, and the far ends of its
//! links.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use dataplane::Config;
use host::{Host, LinkKind};
use lab::oracle::far::{Connections, FarEnd};
use lab::oracle::load::{restore, running};
use lab::oracle::netns::{ip, write_setting};
use lab::oracle::nflog::{Listener, SURVIVORS};
use replay::RulesFile;
use replay::why::Singles;
use rules::model::Family;
use rules::save::LoadOptions;

use super::packets::{End, Sent};

/// What a host is made of.
#[derive(Clone, Copy)]
pub(super) struct Fixture {
    pub(super) name: &'static str,
    ip: &'static str,
    sysctl: &'static str,
    rules: [&'static str; 2],
}

macro_rules! fixture {
    ($name:literal) => {
        Fixture {
            name: $name,
            ip: include_str!(concat!("../../../fixtures/reach/", $name, "/host.ip")),
            sysctl: include_str!(concat!("../../../fixtures/reach/", $name, "/sysctl")),
            rules: [
                include_str!(concat!("../../../fixtures/reach/", $name, "/iptables.save")),
                include_str!(concat!("../../../fixtures/reach/", $name, "/ip6tables.save")),
            ],
        }
    };
}

pub(super) const HOSTS: [Fixture; 3] =
    [fixture!("router"), fixture!("docker"), fixture!("uplinks")];

/// What the lab sets otherwise in its namespaces, as hosts have it.
const USUAL: &[(&str, &str)] = &[
    ("rp_filter", "0"),
    ("accept_local", "0"),
    ("route_localnet", "0"),
    ("accept_source_route", "0"),
    ("send_redirects", "1"),
];

/// The files of a folder, and the commands that print them.
const FILES: [(&str, &str); 6] = [
    ("routes.txt", "ip -4 route show table all; ip -6 route show table all"),
    ("rule.txt", "ip -4 rule; ip -6 rule"),
    ("links.txt", "ip -d -o link"),
    ("addresses.txt", "ip -o addr"),
    ("maddr.txt", "ip maddr"),
    ("sysctl.txt", "sysctl net.ipv4 net.ipv6"),
];

/// A host that packets can be sent to.
pub(super) struct Running {
    pub(super) host: Host,
    pub(super) file: RulesFile,
    pub(super) singles: Singles,
    /// The ends by which packets come in, by the interface that they come in by, with its address.
    ends: BTreeMap<String, (FarEnd, [u8; 6])>,
    seen: Listener,
    connections: Connections,
}

/// Logs what passed all that may drop it.
const WATCH: &str = "table inet seen {
    chain in { type filter hook input priority 1000; log prefix \"IN\" group 5 snaplen 128; }
    chain out { type filter hook postrouting priority 1000; log prefix \"OUT\" group 5 snaplen 128; }
}
";

impl Running {
    /// Makes it in the calling thread's namespace.
    pub(super) fn start(fixture: &Fixture, family: Family) -> io::Result<Self> {
        for (name, value) in USUAL {
            for device in ["all", "default"] {
                write_setting(&format!("ipv4/conf/{device}/{name}"), value)?;
            }
        }
        // Not there where no bridge module is loaded.
        let _ = write_setting("bridge/bridge-nf-call-iptables", "0");
        let _ = write_setting("bridge/bridge-nf-call-ip6tables", "0");
        // A batch is of one family.
        let (v6, both): (Vec<&str>, Vec<&str>) =
            fixture.ip.lines().partition(|line| line.starts_with("-6 "));
        ip(&(both.join("\n") + "\n"))?;
        for line in v6 {
            shell(&format!("ip {line}"), "")?;
        }
        for line in fixture.sysctl.lines() {
            let (name, value) = line.split_once(' ').expect("a name and a value");
            write_setting(name, value)?;
        }
        for (family, text) in [Family::Ipv4, Family::Ipv6].into_iter().zip(fixture.rules) {
            restore(family, text)?;
        }
        shell("nft -f -", WATCH)?;
        let mut seen = Listener::bind(SURVIVORS, 128)?;
        let far: Vec<&str> =
            fixture.ip.split_whitespace().filter(|word| word.starts_with("far-")).collect();
        let mut opened = BTreeMap::new();
        for name in far {
            opened.insert(name.trim_start_matches("far-").to_owned(), FarEnd::open(name)?);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        let host = printed()?;
        let mut ends = BTreeMap::new();
        for (near, end) in opened {
            let link = host.links().named(&near).expect("a link");
            let master = link.master.as_deref().and_then(|name| host.links().named(name));
            let takes = master.filter(|it| it.kind == LinkKind::Bridge).unwrap_or(link);
            ends.insert(takes.name.to_string(), (end, takes.mac.expect("an address")));
        }
        for name in ends.keys() {
            ip(&format!("link set {name} arp off\n"))?;
        }
        let text = fixture.rules[usize::from(family == Family::Ipv6)];
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        let file = RulesFile::from_text("rules", text.to_owned(), &options);
        let file = file.unwrap_or_else(|error| panic!("{error}"));
        let mut config = Config { host: host.clone(), ..Config::default() };
        config.ct.mode = replay::spec::CT;
        let singles = Singles::of(std::slice::from_ref(&file), &config.clone().into());
        seen.drain(|_| {})?;
        Ok(Self { host, file, singles, ends, seen, connections: Connections::open()? })
    }

    /// The interfaces that packets can be sent in by.
    pub(super) fn inputs(&self) -> Vec<String> {
        self.ends.keys().cloned().collect()
    }

    /// Sends a packet of which the host knows nothing: where it was seen last, if it was.
    pub(super) fn send(&mut self, packet: &Sent) -> io::Result<Option<End>> {
        self.connections.forget()?;
        self.seen.drain(|_| {})?;
        let Some((end, mac)) = self.ends.get_mut(&packet.input) else {
            return Err(io::Error::other(format!("no link {}", packet.input)));
        };
        end.send(&packet.frame(*mac))?;
        let mut last = None;
        self.seen.drain(|logged| {
            let ended = End::of(logged.payload, logged.prefix == "IN");
            last = ended.filter(|end| packet.may_be(end)).or(last.take());
        })?;
        Ok(last)
    }
}

/// What its own tools print of the host, without the far ends.
fn printed() -> io::Result<Host> {
    let mut texts = BTreeMap::new();
    for (name, command) in FILES {
        let text = shell(command, "")?;
        let own = text.lines().filter(|line| {
            let named = line.split_whitespace().take(2).any(|word| word.starts_with("far-"));
            !named && !line.contains("dev far-") && !line.contains(".far-")
        });
        let own = own.map(|line| {
            let words = line.split(' ').map(|word| match word.split_once("@far-") {
                Some((name, _)) => format!("{name}@if99:"),
                None => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ") + "\n"
        });
        texts.insert(name, own.collect::<String>());
    }
    let host = Host::read(|name| texts.get(name).cloned());
    let mut host = host.unwrap_or_else(|error| panic!("{error}"));
    host.kernel = running();
    Ok(host)
}

fn shell(command: &str, input: &str) -> io::Result<String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.stderr(Stdio::piped()).spawn()?;
    let mut to = child.stdin.take().expect("a pipe");
    io::Write::write_all(&mut to, input.as_bytes())?;
    drop(to);
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() || !text.is_empty() {
        true => Ok(text),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
