//! Hosts in network namespaces: a cloud on a network, and nodes behind routers that masquerade. All go with [`Hosts`], also
//! after a panic.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The built cloud.
const CLOUD: &str = env!("CARGO_BIN_EXE_tamis-cloud");
/// Where the cloud is.
pub(crate) const PUBLIC: &str = "203.0.113.1";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// Hosts: the cloud, the network between, and for each node itself and its router.
pub(crate) struct Hosts {
    test: String,
    pub(crate) folder: tempfile::TempDir,
    tamis: PathBuf,
    running: Vec<(String, Child)>,
    made: Vec<String>,
}

/// Says why a test cannot run, past the capture of test output.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

impl Hosts {
    /// `None` where this machine has no namespaces for us, or something is not there; it says so.
    pub(crate) fn new(test: &str, nodes: &[&str]) -> Option<Self> {
        let tamis = Path::new(CLOUD).with_file_name("tamis");
        if !tamis.exists() {
            skipped(&format!("{test}: {} is not built (cargo build -p tamis)", tamis.display()));
            return None;
        }
        for (tool, version) in [("ping", "-V"), ("nft", "-v"), ("dig", "-v")] {
            if Command::new(tool).arg(version).output().is_err() {
                skipped(&format!("{test}: {tool} is not there"));
                return None;
            }
        }
        let folder = tempfile::tempdir().ok()?;
        let test = format!("{test}{}", std::process::id());
        let (running, made) = (Vec::new(), Vec::new());
        let mut hosts = Self { test, folder, tamis, running, made };
        let routers: Vec<String> = nodes.iter().map(|node| format!("r{node}")).collect();
        let names = ["cloud", "net"].into_iter().chain(nodes.iter().copied());
        for name in names.chain(routers.iter().map(String::as_str)) {
            let made = Command::new("ip").args(["netns", "add", &hosts.full(name)]).output();
            if !made.is_ok_and(|made| made.status.success()) {
                skipped(&format!(
                    "{}: no network namespaces (not root, or no iproute2?)",
                    hosts.test
                ));
                return None;
            }
            hosts.made.push(name.to_owned());
            hosts.does(name, "ip link set dev lo up");
        }
        hosts.lay(nodes);
        Some(hosts)
    }

    /// Adds a server's host, 203.0.NUMBER.1.
    pub(crate) fn add(&mut self, name: &str, number: u8) {
        let made = Command::new("ip").args(["netns", "add", &self.full(name)]).status();
        assert!(made.unwrap().success());
        self.made.push(name.to_owned());
        self.does(name, "ip link set dev lo up");
        let net = format!("203.0.{number}");
        let (own, gateway) = (format!("{net}.1/24"), format!("{net}.254/24"));
        self.join((name, "eth0", &own), ("net", name, &gateway));
        self.does(name, &format!("ip route replace default via {net}.254"));
    }

    /// The name of a host's namespace.
    pub(crate) fn full(&self, name: &str) -> String {
        format!("{}-{name}", self.test)
    }

    fn lay(&self, nodes: &[&str]) {
        self.does("net", "sysctl -qw net.ipv4.ip_forward=1");
        self.join(("cloud", "eth0", &format!("{PUBLIC}/24")), ("net", "cloud", "203.0.113.254/24"));
        for (number, node) in (1..).zip(nodes) {
            let router = format!("r{node}");
            let wan = format!("198.51.{number}");
            let lan = format!("10.{number}.0");
            self.join(
                (&router, "wan", &format!("{wan}.1/24")),
                ("net", node, &format!("{wan}.254/24")),
            );
            self.join(
                (node, "eth0", &format!("{lan}.2/24")),
                (&router, "lan", &format!("{lan}.1/24")),
            );
            self.does(&router, "sysctl -qw net.ipv4.ip_forward=1");
            self.does(&router, &format!("ip route replace default via {wan}.254"));
            self.does(node, &format!("ip route replace default via {lan}.1"));
        }
        self.does("cloud", "ip route replace default via 203.0.113.254");
    }

    /// Joins two hosts, each by a device of its own with an address.
    pub(crate) fn join(&self, left: (&str, &str, &str), right: (&str, &str, &str)) {
        let ((one, device, address), (other, at, to)) = (left, right);
        let other_full = self.full(other);
        self.does(
            one,
            &format!("ip link add {device} type veth peer name {at} netns {other_full}"),
        );
        for (host, device, address) in [(one, device, address), (other, at, to)] {
            self.does(host, &format!("ip address add {address} dev {device}"));
            self.does(host, &format!("ip link set dev {device} up"));
        }
    }

    /// Makes a node's router masquerade, with these words.
    pub(crate) fn masquerades(&self, node: &str, how: &str) {
        let rules = format!(
            "table ip t {{\nchain post {{\ntype nat hook postrouting priority srcnat\n\
             oifname \"wan\" masquerade {how}\n}}\n}}\n"
        );
        self.rules(&format!("r{node}"), &rules);
    }

    /// Makes a node's router drop what is for itself, as most do: what comes too early leaves no trace in it.
    pub(crate) fn shuts(&self, node: &str) {
        let rules = "table ip shut {\nchain input {\ntype filter hook input priority 0\n\
                     iifname \"wan\" drop\n}\n}\n";
        self.rules(&format!("r{node}"), rules);
    }

    /// Gives a host more rules.
    pub(crate) fn rules(&self, host: &str, rules: &str) {
        let file = self.folder.path().join(format!("{host}.nft"));
        fs::write(&file, rules).unwrap();
        self.does(host, &format!("nft -f {}", file.display()));
    }

    fn command(&self, host: &str, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.full(host), program]).args(args);
        command
    }

    pub(crate) fn says(&self, host: &str, line: &str) -> Output {
        let words: Vec<&str> = line.split(' ').collect();
        self.command(host, words[0], &words[1..]).output().unwrap()
    }

    /// Does something that has to succeed, and returns what it prints.
    pub(crate) fn does(&self, host: &str, line: &str) -> String {
        let line = line.replacen("tamis ", &format!("{} ", self.tamis.display()), 1);
        let output = self.says(host, &line);
        assert!(output.status.success(), "{host}: {line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn config(&self) -> String {
        self.folder.path().join("cloud.toml").display().to_string()
    }

    pub(crate) fn tamis(&self) -> String {
        self.tamis.display().to_string()
    }

    /// Asks the cloud, which may refuse.
    pub(crate) fn asks_cloud(&self, line: &str) -> Output {
        self.says("cloud", &format!("{CLOUD} {line}"))
    }

    pub(crate) fn cloud(&self, line: &str) -> String {
        self.does("cloud", &format!("{CLOUD} {line}"))
    }

    /// Starts something whose output goes to a file.
    fn start(&mut self, host: &str, program: &str, args: &[&str]) {
        let log = File::create(self.folder.path().join(format!("{host}.log"))).unwrap();
        let mut command = self.command(host, program, args);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.running.push((host.to_owned(), command.spawn().unwrap()));
    }

    pub(crate) fn log(&self, host: &str) -> String {
        let path = self.folder.path().join(format!("{host}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    pub(crate) fn start_cloud(&mut self) {
        self.serve("cloud", "all", &self.config());
    }

    /// Starts a server on a host, and waits until it says that it serves.
    pub(crate) fn serve(&mut self, host: &str, server: &str, config: &str) {
        self.begin(host, server, config);
        self.wait(server, |hosts| hosts.log(host).contains("is served"));
    }

    /// Starts a server on a host.
    pub(crate) fn begin(&mut self, host: &str, server: &str, config: &str) {
        self.start(host, CLOUD, &[server, config]);
    }

    /// Asks a server on a host, which may refuse.
    pub(crate) fn asks_cloud_on(&self, host: &str, line: &str) -> Output {
        self.says(host, &format!("{CLOUD} {line}"))
    }

    /// What the program prints on a host.
    pub(crate) fn cloud_on(&self, host: &str, line: &str) -> String {
        self.does(host, &format!("{CLOUD} {line}"))
    }

    /// Ends what runs on a host, as a crash does.
    pub(crate) fn kill(&mut self, host: &str) {
        let killed = self.kill_all(host);
        let (ended, left) =
            std::mem::take(&mut self.running).into_iter().partition(|it| it.0 == host);
        self.running = left;
        let ended: Vec<(String, Child)> = ended;
        ended.into_iter().for_each(|(_, mut child)| drop(child.wait()));
        // Their children have sockets until their last threads have ended.
        self.wait("the end of what was killed", |_| !killed.iter().any(|pid| has_threads(pid)));
    }

    /// Kills what runs on a host, waits for nothing, and returns the processes.
    pub(crate) fn kill_all(&self, host: &str) -> Vec<String> {
        let pids = Command::new("ip").args(["netns", "pids", &self.full(host)]).output();
        let pids = pids.map(|output| output.stdout).unwrap_or_default();
        let pids: Vec<String> = String::from_utf8_lossy(&pids).lines().map(str::to_owned).collect();
        for pid in &pids {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        pids
    }

    /// Makes a host a node, by what the cloud printed for it.
    pub(crate) fn join_as(&self, node: &str, printed: &str) -> Output {
        let heading = format!("# {node},");
        let mut lines = printed.lines().skip_while(|line| !line.starts_with(&heading));
        let command = lines.nth(1).expect("a command for each name");
        let folder = self.folder.path().join(node);
        fs::create_dir_all(&folder).unwrap();
        let line = format!("{command} --name tam --out {}", folder.display());
        let line = line.replacen("tamis ", &format!("{} ", self.tamis.display()), 1);
        self.says(node, &line)
    }

    pub(crate) fn node_config(&self, node: &str) -> PathBuf {
        self.folder.path().join(node).join("tam.toml")
    }

    /// Brings a node's tunnel up. Its control socket is in the folder of the test.
    pub(crate) fn up(&mut self, node: &str) {
        let config = self.node_config(node);
        let text = fs::read_to_string(&config).unwrap();
        if !text.contains("control = ") {
            fs::write(
                &config,
                text.replacen("[tunnel]\n", "[tunnel]\ncontrol = \"tam.sock\"\n", 1),
            )
            .unwrap();
        }
        // Servers of names are the machine's, which nobody reaches from here.
        let servers = self.folder.path().join("resolv.conf");
        fs::write(&servers, "").unwrap();
        let [tamis, config, servers] = [&self.tamis, &config, &servers].map(|it| it.display());
        let script =
            format!("mount --bind {servers} /etc/resolv.conf && exec {tamis} tunnel up {config}");
        self.start(node, "sh", &["-c", &script]);
        self.wait("a tunnel", |hosts| hosts.log(node).contains("is up"));
    }

    /// What a node's own server of names answers, as dig prints it: the status, and the answers.
    pub(crate) fn dig(&self, node: &str, name: &str, kind: &str) -> (String, String) {
        let text = fs::read_to_string(self.node_config(node)).unwrap();
        let line = text.lines().find(|line| line.starts_with("dns = ")).unwrap();
        let server = line.split('"').nth(1).unwrap();
        let all = self.does(node, &format!("dig +tries=1 +time=8 @{server} {name} {kind}"));
        let status = all.split("status: ").nth(1).and_then(|rest| rest.split(',').next());
        let short = all.lines().filter(|line| !line.starts_with(';') && !line.is_empty());
        let short = short.filter_map(|line| line.split_whitespace().last());
        (status.unwrap_or_default().to_owned(), short.collect::<Vec<_>>().join(" "))
    }

    /// Whether a host answers to one of some packets.
    pub(crate) fn pings(&self, node: &str, address: &str) -> bool {
        let output = self.says(node, &format!("ping -n -c 1 -W 1 {address}"));
        output.status.success()
    }

    pub(crate) fn wait(&self, what: &str, mut is_there: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !is_there(self) {
            assert!(start.elapsed() < PATIENCE, "{what} did not come; {}", self.log("cloud"));
            thread::sleep(Duration::from_millis(50));
        }
        println!("{what}: {} ms", start.elapsed().as_millis());
    }
}

/// Whether a process has threads that have not ended. Once its first thread has, `ip netns pids` does not list it, whatever the others
/// still hold.
fn has_threads(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    match field("State:") {
        None => false,
        Some(state) if state.starts_with(['Z', 'X']) => field("Threads:").as_deref() != Some("1"),
        Some(_) => true,
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.made.clone() {
            if thread::panicking() {
                eprintln!("{name}: {}", self.log(&name));
            }
            self.kill_all(&name);
            let _ = Command::new("ip").args(["netns", "delete", &self.full(&name)]).status();
        }
        self.running.iter_mut().for_each(|(_, child)| drop(child.wait()));
    }
}
