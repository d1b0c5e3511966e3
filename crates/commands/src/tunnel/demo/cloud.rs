//! [`story`]: the steps of `tamis tunnel demo --cloud`: a cloud, two routers that masquerade, and nodes behind them that find
//! each other by name.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::show::{show, title};
use super::world::{Knocked, World, own_path, says, tamis};
use crate::tunnel::host::is_there;

/// The servers' program.
const SERVERS: &str = "tamis-cloud";

/// The domain of the network.
const DOMAIN: &str = "home.internal";

/// Where the cloud is.
const PUBLIC: &str = "192.0.2.1";

/// A node: its name, its router, and its address there.
struct Node {
    name: &'static str,
    router: &'static str,
    address: &'static str,
}

const LAPTOP: Node = Node { name: "laptop", router: "cafe", address: "10.1.0.2/24" };
const PHONE: Node = Node { name: "phone", router: "cafe", address: "10.1.0.3/24" };
const NAS: Node = Node { name: "nas", router: "home", address: "10.2.0.2/24" };

/// Routers: name, address on the network that all share, address towards its nodes.
const ROUTERS: [[&str; 3]; 2] =
    [["cafe", "192.0.2.11/24", "10.1.0.1"], ["home", "192.0.2.12/24", "10.2.0.1"]];

/// Who may reach whom.
const POLICY: &str = "\
[[allow]]
from = [\"laptop\"]
to = [\"nas\"]
ports = [\"icmp\", \"tcp/80\"]

[[allow]]
between = [\"laptop\", \"phone\"]
";

/// A port of nas that the policy lets laptop reach, and a port that it does not.
const OPEN: u16 = 80;

const DENIED: u16 = 22;

/// How long a node may take until it is known.
const PATIENCE: Duration = Duration::from_secs(15);

/// Checks for the programs that this demonstration alone needs.
///
/// # Errors
/// The first program that is not there.
pub(super) fn needs() -> Result<()> {
    servers()?;
    match ["nft", "mount", "sysctl"].into_iter().find(|program| !is_there(program)) {
        Some(program) => bail!("{program}(8) is not there: routers and resolvers need it"),
        None => Ok(()),
    }
}

/// The program of the servers: in the folder of this one, or in PATH.
fn servers() -> Result<PathBuf> {
    let beside = std::env::current_exe().context("this program")?.with_file_name(SERVERS);
    match beside.exists() {
        true => Ok(beside),
        false if is_there(SERVERS) => Ok(SERVERS.into()),
        false => bail!("{SERVERS} is not there: it comes with tamis (cargo build -p {SERVERS})"),
    }
}

/// Plays it; `go_on` fails where it is to end.
pub(super) fn story(go_on: &dyn Fn() -> Result<()>) -> Result<()> {
    title("a cloud, two routers that masquerade, and three nodes behind them, each a namespace")?;
    let mut world = hosts()?;
    let demo = Demo { cloud: servers()?.display().to_string(), config: world.file("cloud.toml") };
    let [config, domain] = [&*demo.config, DOMAIN];
    title(&format!(
        "cloud: {SERVERS} all cloud.toml --init --public {PUBLIC}:51900 --domain {domain}"
    ))?;
    let public = format!("{PUBLIC}:51900");
    let init = ["all", config, "--init", "--public", &public, "--domain", domain];
    demo.asks(&world, &init)?;
    let text = fs::read_to_string(config).context(demo.config.clone())?;
    fs::write(config, format!("{text}\n{POLICY}")).context(demo.config.clone())?;
    show(POLICY)?;
    let mut serving = world.command("cloud", &demo.cloud);
    serving.args(["all", config]).stderr(Stdio::null());
    world.start(serving, DOMAIN)?;
    go_on()?;
    demo.enrol(&mut world)?;
    go_on()?;
    demo.reach(&world)?;
    go_on()?;
    demo.revoke(&world)
}

/// The hosts of it.
fn hosts() -> Result<World> {
    let mut world = World::new()?;
    world.add_network("internet")?;
    world.add("cloud")?;
    world.connect("cloud", ("eth0", &format!("{PUBLIC}/24")), "internet")?;
    for [router, outside, inside] in ROUTERS {
        world.add_network(router)?;
        world.connect(router, ("wan", outside), "internet")?;
        world.set(router, &format!("address add {inside}/24 dev shared"))?;
        let rules = "table ip nat {\nchain out {\ntype nat hook postrouting priority srcnat\n\
                     oifname wan masquerade\n}\n}\n";
        for (program, args) in
            [("sysctl", &["-qw", "net.ipv4.ip_forward=1"][..]), ("nft", &[rules])]
        {
            let mut command = world.command(router, program);
            command.args(args);
            says(command)?;
        }
    }
    for Node { name, router, address } in [LAPTOP, PHONE, NAS] {
        world.add(name)?;
        world.connect(name, ("eth0", address), router)?;
        let inside = ROUTERS.iter().find(|it| it[0] == router).map_or("", |it| it[2]);
        world.set(name, &format!("route add default via {inside}"))?;
    }
    Ok(world)
}

/// The cloud: its program and its configuration.
struct Demo {
    cloud: String,
    config: String,
}

impl Demo {
    /// What a command of the cloud prints.
    fn asks(&self, world: &World, args: &[&str]) -> Result<String> {
        let mut command = world.command("cloud", &self.cloud);
        command.args(args);
        says(command)
    }

    /// Enrols the nodes, and brings their tunnels up.
    fn enrol(&self, world: &mut World) -> Result<()> {
        let nodes = [LAPTOP, PHONE, NAS];
        title(&format!("cloud: {SERVERS} enrol laptop phone nas"))?;
        let names = nodes.iter().map(|node| node.name);
        let args: Vec<&str> =
            ["enrol", "--config", &self.config].into_iter().chain(names).collect();
        let printed = self.asks(world, &args)?;
        show(&printed)?;
        let commands = printed.lines().filter(|line| line.starts_with("tamis "));
        for (node, line) in nodes.iter().zip(commands) {
            title(&format!(
                "{0}: the command that was printed for it, and tamis tunnel up {0}.toml",
                node.name
            ))?;
            join(world, node.name, line)?;
            show(&world.up(node.name)?)?;
        }
        let start = Instant::now();
        let is_there = |listed: &str| listed.matches("present").count() >= nodes.len();
        title(&format!("cloud: {SERVERS} devices"))?;
        loop {
            let listed = self.asks(world, &["devices", "--config", &self.config])?;
            if is_there(&listed) {
                return show(&listed);
            }
            if start.elapsed() > PATIENCE {
                bail!("a node did not register:\n{listed}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Nodes find each other by name, or do not.
    fn reach(&self, world: &World) -> Result<()> {
        for (from, to) in [(LAPTOP, NAS), (LAPTOP, PHONE)] {
            let name = format!("{}.{DOMAIN}", to.name);
            title(&format!("{}: ping {name}", from.name))?;
            show(&world.ping(by_name(world, from.name, "ping"), &name)?)?;
        }
        knock(world)?;
        title(&format!("phone: ping nas.{DOMAIN}, which no line allows"))?;
        let mut denied = by_name(world, PHONE.name, "ping");
        let output = denied.args(["-c", "1", &format!("nas.{DOMAIN}")]).output().context("ping")?;
        if output.status.success() {
            bail!("phone reaches nas, which it may not");
        }
        show(&String::from_utf8_lossy(&output.stderr))?;
        title(&format!("cloud: {SERVERS} log"))?;
        let log = self.asks(world, &["log", "--config", &self.config])?;
        let last = log.lines().filter(|line| line.contains("phone asked"));
        show(&last.map(|line| format!("{line}\n")).collect::<String>())
    }

    /// A node is revoked while it is pinged.
    fn revoke(&self, world: &World) -> Result<()> {
        title(&format!(
            "laptop: ping phone.{DOMAIN}, and after two seconds cloud: {SERVERS} revoke phone"
        ))?;
        let mut pings = by_name(world, LAPTOP.name, "ping");
        let name = format!("phone.{DOMAIN}");
        let pings = pings.args(["-i", "0.2", "-w", "5", &name]).stdout(Stdio::piped()).spawn();
        let pings = pings.context("ping")?;
        thread::sleep(Duration::from_secs(2));
        show(&self.asks(world, &["revoke", PHONE.name, "--config", &self.config])?)?;
        let output = pings.wait_with_output().context("ping")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told: Vec<&str> = said.lines().filter(|line| line.contains("transmitted")).collect();
        show(&format!("{}\n", told.join("\n")))?;
        let answers = said.lines().filter(|line| line.contains("time=")).count();
        match answers {
            1..=20 => Ok(()),
            _ => bail!("{answers} answers: expected the answers of the first two seconds"),
        }
    }
}

/// Knocks at a port of nas that the policy lets laptop reach, and at a port that it does not, and says why.
fn knock(world: &World) -> Result<()> {
    for (port, expected) in [(OPEN, Knocked::Answered), (DENIED, Knocked::Silence)] {
        let mut looked_up = by_name(world, LAPTOP.name, "getent");
        looked_up.args(["ahostsv4", &format!("nas.{DOMAIN}")]);
        let printed = says(looked_up)?;
        let address = printed.split(' ').next().unwrap_or_default();
        let address: IpAddr = address.parse().with_context(|| printed.clone())?;
        let found = world.knock(LAPTOP.name, SocketAddr::new(address, port))?;
        show(&format!("laptop: a connection to nas.{DOMAIN}:{port}: {found}\n"))?;
        if found != expected {
            bail!("a connection to port {port}: expected {expected}");
        }
    }
    title(&format!("laptop: tamis tunnel why nas tcp/{DENIED}"))?;
    let config = world.file(&format!("{}.toml", LAPTOP.name));
    let port = format!("tcp/{DENIED}");
    show(&tamis(
        world.command(LAPTOP.name, &own_path()?),
        &["tunnel", "why", "nas", &port, "--tunnel", &config],
    )?)
}

/// Makes a host a node by the command that was printed for it. Its control socket and its resolver are its own: the host's
/// are shared by all namespaces.
fn join(world: &World, node: &str, line: &str) -> Result<()> {
    let mut command = world.command(node, &own_path()?);
    command.args(line.split(' ').skip(1)).args(["--name", node, "--out", &world.file("")]);
    says(command)?;
    let file = world.file(&format!("{node}.toml"));
    let text = fs::read_to_string(&file).context(file.clone())?;
    let server = text.lines().find_map(|line| line.strip_prefix("dns = [\"")?.split('"').next());
    let server = server.with_context(|| format!("{file}: no dns"))?;
    fs::write(world.file(&format!("{node}.resolv")), format!("nameserver {server}\n"))?;
    fs::write(world.file("nsswitch"), "hosts: files dns\n")?;
    let is_of_host = |line: &&str| !line.starts_with("dns = ") && !line.starts_with("search = ");
    let text: Vec<&str> = text.lines().filter(is_of_host).collect();
    let control = format!("[tunnel]\ncontrol = \"{node}.sock\"");
    fs::write(&file, text.join("\n").replacen("[tunnel]", &control, 1) + "\n").context(file)
}

/// A program of a node that finds names by the node's own resolver.
fn by_name(world: &World, node: &str, program: &str) -> Command {
    let script = "mount --bind \"$1\" /etc/resolv.conf && mount --bind \"$2\" /etc/nsswitch.conf && \
                  shift 2 && exec \"$@\"";
    let mut command = world.command(node, "sh");
    let resolver = world.file(&format!("{node}.resolv"));
    command.args(["-c", script, "sh", &resolver, &world.file("nsswitch"), program]);
    command
}
