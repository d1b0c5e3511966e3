//! Decisions against the kernel's: in network namespaces with random addresses, routes, policy rules and settings,
//! `ip route get DESTINATION from SOURCE iif INTERFACE` answers as the kernel routes what comes in, and counters of
//! `-m rpfilter` tell whether it finds a way back. Needs root.

mod way_back;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use host::{Host, Incoming, Missing, Outgoing, Reached, Refused, Routed};

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len() as u64) as usize]
    }

    /// An address out of few, so that routes, rules and packets meet.
    fn v4(&mut self) -> String {
        match self.below(14) {
            0 => "127.0.0.1".into(),
            1 => "127.0.0.9".into(),
            2 => "0.0.0.0".into(),
            3 => "255.255.255.255".into(),
            4 => "224.0.0.1".into(),
            5 => "224.0.0.77".into(),
            6 => "239.1.1.1".into(),
            _ => {
                let last = self.of(&["0", "1", "2", "5", "9", "127", "128", "255"]);
                format!("10.{}.{}.{last}", self.below(4), self.below(2))
            }
        }
    }

    fn v4_net(&mut self) -> String {
        match self.below(4) {
            0 => format!("10.{}.0.0/16", self.below(4)),
            1 => format!("10.{}.{}.0/24", self.below(4), self.below(2)),
            2 => format!("10.{}.{}.128/25", self.below(4), self.below(2)),
            _ => {
                format!("10.{}.{}.{}/32", self.below(4), self.below(2), self.of(&["5", "9", "255"]))
            }
        }
    }

    fn v6(&mut self) -> String {
        match self.below(8) {
            0 => "fe80::9".into(),
            _ => format!(
                "2001:db8:{}:{}::{}",
                self.below(4),
                self.below(2),
                self.of(&["0", "1", "5", "9"])
            ),
        }
    }

    fn v6_net(&mut self) -> String {
        match self.below(3) {
            0 => format!("2001:db8:{}::/48", self.below(4)),
            1 => format!("2001:db8:{}:{}::/64", self.below(4), self.below(2)),
            _ => format!(
                "2001:db8:{}:{}::{}/128",
                self.below(4),
                self.below(2),
                self.of(&["5", "9"])
            ),
        }
    }
}

const LINKS: [&str; 3] = ["e0", "e1", "e2"];

/// Writes shell commands that make a host; commands that the kernel refuses change nothing.
fn scene(draw: &mut Draw) -> String {
    let mut script = String::from("ip link set lo up\n");
    for (number, link) in LINKS.iter().enumerate() {
        let _ = write!(
            script,
            "ip link add {link} type veth peer name p{number}\n\
             echo 1 > /proc/sys/net/ipv6/conf/{link}/addr_gen_mode\n\
             echo 0 > /proc/sys/net/ipv6/conf/{link}/accept_dad\n\
             ip link set {link} up arp off; ip link set p{number} up arp off\n\
             ip addr add 10.{number}.0.1/24 dev {link}\n\
             ip addr add 2001:db8:{number}::1/64 dev {link} nodad\n"
        );
    }
    script.push_str(
        "echo 1 > /proc/sys/net/ipv4/ip_forward\necho 1 > /proc/sys/net/ipv6/conf/all/forwarding\n",
    );
    for (setting, most) in [
        ("rp_filter", 3),
        ("accept_local", 2),
        ("route_localnet", 2),
        ("forwarding", 2),
        ("send_redirects", 2),
        ("src_valid_mark", 2),
    ] {
        for device in ["all", "e0", "e1", "e2"] {
            let value = draw.below(most);
            let is_all_forwarding = setting == "forwarding" && device == "all";
            if draw.one_in(4) && !is_all_forwarding {
                let _ =
                    writeln!(script, "echo {value} > /proc/sys/net/ipv4/conf/{device}/{setting}");
            }
        }
    }
    let own_rules = !draw.one_in(3);
    for _ in 0..draw.below(20) {
        let is_v6 = draw.one_in(3);
        let ip = if is_v6 { "ip -6" } else { "ip" };
        let net = if is_v6 { draw.v6_net() } else { draw.v4_net() };
        let net = if draw.one_in(6) { "default".to_owned() } else { net };
        let kind = draw.of(&[
            "",
            "",
            "",
            "",
            "",
            "blackhole",
            "unreachable",
            "prohibit",
            "throw",
            "local",
            "anycast",
        ]);
        let link = draw.of(&LINKS);
        let place = match kind {
            "" | "local" | "anycast" => format!("dev {link}"),
            _ => String::new(),
        };
        let many = "nexthop dev e0 nexthop dev e1";
        let place = if kind.is_empty() && draw.one_in(8) { many.to_owned() } else { place };
        let table = if own_rules {
            draw.of(&["main", "main", "local", "100", "101"])
        } else {
            draw.of(&["main", "main", "main", "local"])
        };
        let metric = draw.below(3) * 10;
        let metric = if metric > 0 { format!("metric {metric}") } else { String::new() };
        let tos = if !is_v6 && draw.one_in(8) { "tos 0x10" } else { "" };
        let mtu = if kind.is_empty() && draw.one_in(6) { "mtu 1400" } else { "" };
        let _ = writeln!(
            script,
            "{ip} route add {kind} {net} {tos} {place} table {table} {metric} {mtu}"
        );
    }
    for _ in 0..if own_rules { draw.below(7) } else { 0 } {
        let is_v6 = draw.one_in(3);
        let net = |draw: &mut Draw| if is_v6 { draw.v6_net() } else { draw.v4_net() };
        let mut rule = String::from(if is_v6 { "ip -6 rule add " } else { "ip rule add " });
        let _ = write!(rule, "pref {} ", draw.below(40) * 1000);
        for name in ["not", "from", "to", "iif", "fwmark", "tos", "ipproto", "dport"] {
            if !draw.one_in(3) {
                continue;
            }
            let _ = match name {
                "not" => write!(rule, "not "),
                "from" | "to" => write!(rule, "{name} {} ", net(draw)),
                "iif" => write!(rule, "iif {} ", draw.of(&["e0", "e1", "lo", "nosuch"])),
                "fwmark" => write!(rule, "fwmark {} ", draw.of(&["1", "0x1/0x3", "0x2/0x2"])),
                "tos" => write!(rule, "tos 0x10 "),
                "ipproto" => write!(rule, "ipproto udp "),
                _ => write!(rule, "ipproto udp dport {} ", draw.of(&["53", "50-60"])),
            };
        }
        rule.push_str(draw.of(&[
            "lookup 100",
            "lookup 101",
            "lookup main suppress_prefixlength 16",
            "lookup main",
            "blackhole",
            "unreachable",
            "prohibit",
            "goto 32766",
        ]));
        let _ = writeln!(script, "{rule}");
    }
    if own_rules && draw.one_in(4) {
        script.push_str("ip rule del pref 0; ip rule add pref 500 lookup local\n");
    }
    script
}

/// What is asked of both: a line of `ip -batch`, and the same as a packet.
struct Query {
    line: String,
    source: String,
    destination: String,
    input: &'static str,
    tos: u8,
    mark: u32,
    port: u16,
}

fn query(draw: &mut Draw) -> Query {
    let is_v6 = draw.one_in(3);
    let mut addr = || if is_v6 { draw.v6() } else { draw.v4() };
    let (mut source, destination) = (addr(), addr());
    if source == "fe80::9" {
        source = "2001:db8:3::77".into();
    }
    let input = draw.of(&LINKS);
    let (tos, mark) = (if draw.one_in(4) { 0x10 } else { 0 }, draw.below(4) as u32);
    let port = if draw.one_in(2) { 53 } else { 80 };
    let line = format!(
        "route get {destination} from {source} iif {input} tos {tos:#x} mark {mark} ipproto udp sport 999 dport {port}"
    );
    Query { line, source, destination, input, tos, mark, port }
}

/// Runs a script in a namespace that ends with it; what it printed.
fn in_namespace(script: &str) -> (String, String) {
    let mut child = Command::new("unshare")
        .args(["--net", "--mount-proc", "--fork", "--pid", "sh"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tools answer as they always do");
    child
        .stdin
        .take()
        .expect("the tools answer as they always do")
        .write_all(script.as_bytes())
        .expect("the tools answer as they always do");
    let output = child.wait_with_output().expect("the tools answer as they always do");
    let text =
        |bytes: Vec<u8>| String::from_utf8(bytes).expect("the tools answer as they always do");
    (text(output.stdout), text(output.stderr))
}

const FILES: [(&str, &str); 5] = [
    ("routes.txt", "ip -4 route show table all; ip -6 route show table all"),
    ("rule.txt", "ip -4 rule; ip -6 rule"),
    ("links.txt", "ip -d -o link"),
    ("addresses.txt", "ip -o addr"),
    ("maddr.txt", "ip maddr"),
];

/// The kernel's answers by the number of the query, from 1: a line, or the reason why there is none.
fn answers(
    printed: &str,
    complaints: &str,
    queries: usize,
) -> HashMap<usize, Result<String, String>> {
    let mut failed: HashMap<usize, String> = HashMap::new();
    let mut reason = String::new();
    for line in complaints.lines() {
        match line.strip_prefix("Command failed -:") {
            Some(number) => {
                failed.insert(
                    number.parse().expect("the tools answer as they always do"),
                    std::mem::take(&mut reason),
                );
            }
            None => reason = line.to_owned(),
        }
    }
    let mut lines = printed.lines();
    let answer = |number| match failed.remove(&number) {
        Some(reason) => (number, Err(reason)),
        None => (number, Ok(lines.next().expect("the tools answer as they always do").to_owned())),
    };
    (1..=queries).map(answer).collect()
}

/// Whether an answer of the kernel is ours.
fn agree(ours: Routed<'_>, kernels: &Result<String, String>, destination: &str) -> bool {
    let line = match kernels {
        Ok(line) => line,
        Err(reason) => {
            let wanted: &[Refused] = if reason.ends_with("Invalid argument") {
                &[Refused::Martian, Refused::RpFilter, Refused::Blackhole, Refused::NotJoined]
            } else if reason.ends_with("Invalid cross-device link") {
                &[Refused::RpFilter]
            } else if reason.ends_with("Permission denied") {
                &[Refused::Prohibit]
            } else if reason.ends_with("No route to host") {
                &[Refused::ForwardingOff, Refused::Unreachable, Refused::NoRoute]
            } else {
                &[Refused::NoRoute, Refused::Unreachable]
            };
            return matches!(ours, Routed::Refused(why) if wanted.contains(&why));
        }
    };
    let word = line.split_whitespace().next().expect("the tools answer as they always do");
    let after = |name: &str| line.split_whitespace().skip_while(|word| *word != name).nth(1);
    match (ours, word) {
        (Routed::Input(Reached::Local), "local")
        | (Routed::Input(Reached::Broadcast), "broadcast")
        | (Routed::Input(Reached::Multicast), "multicast")
        | (Routed::Input(Reached::Anycast), "anycast")
        | (Routed::Refused(Refused::Unreachable | Refused::NoRoute), "unreachable")
        | (Routed::Refused(Refused::Blackhole), "blackhole")
        | (Routed::Refused(Refused::Prohibit), "prohibit") => true,
        (Routed::Forward { output, mtu }, word)
            if word.parse().ok() == destination.parse::<IpAddr>().ok() =>
        {
            let mtu_given = after("mtu")
                .map_or(1500, |mtu| mtu.parse().expect("the tools answer as they always do"));
            output.is_none() || output == after("dev") && mtu == Some(mtu_given)
        }
        _ => false,
    }
}

/// How many scenes to look at; none where there is no root, which is then printed.
fn scenes() -> u64 {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let unshares =
        || Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|s| s.success());
    if !is_root || !unshares() {
        println!("SKIPPED: routing against the kernel needs root and network namespaces");
        return 0;
    }
    if std::env::var_os("TAMIS_FULL").is_some() { 200 } else { 16 }
}

/// Commands that make a host of random parts and print its files.
fn told_scene(draw: &mut Draw, more: &str) -> String {
    let mut script = format!("{{ {}{more} }} >/dev/null 2>&1\nsleep 0.1\n", scene(draw));
    for (name, commands) in FILES {
        let _ = writeln!(script, "echo '#### {name}'; {{ {commands}; }} 2>/dev/null");
    }
    script.push_str("echo '#### sysctl.txt'; sysctl net.ipv4.conf net.ipv6.conf 2>/dev/null\n");
    script.push_str("echo '#### answers'\n");
    script
}

/// Makes a host of random parts and asks the kernel; what the host's files say, and the answers.
fn ask(draw: &mut Draw, queries: &[Query]) -> (Host, HashMap<usize, Result<String, String>>) {
    let mut script = told_scene(draw, "");
    script.push_str("ip -o -force -batch - <<'END'\n");
    queries.iter().for_each(|query| script.push_str(&format!("{}\n", query.line)));
    script.push_str("END\n");
    let (printed, complaints) = in_namespace(&script);
    let parts: HashMap<&str, &str> =
        printed.split("#### ").filter_map(|part| part.split_once('\n')).collect();
    let host = Host::read(|name| parts.get(name).map(|text| (*text).to_owned()));
    let answers = answers(parts["answers"], &complaints, queries.len());
    (host.expect("what the tools print"), answers)
}

#[test]
fn the_kernel_routes_what_comes_in_as_we_do() {
    let (mut wrong, mut open, mut all) = (Vec::new(), 0, 0);
    let scenes = scenes();
    for seed in 0..scenes {
        let mut draw = Draw(seed);
        let queries: Vec<Query> = (0..250).map(|_| query(&mut draw)).collect();
        let (host, answers) = ask(&mut draw, &queries);
        for (number, query) in (1..).zip(&queries) {
            let packet = Incoming {
                tos: Some(query.tos),
                mark: Some(query.mark),
                protocol: Some(17),
                ports: Some([999, query.port]),
                ..Incoming::new(
                    query.source.parse().unwrap(),
                    query.destination.parse().unwrap(),
                    Some(query.input),
                )
            };
            let ours = host.route_in(&packet);
            all += 1;
            if ours == Routed::Unknown(Missing::Mark) {
                open += 1;
            } else if !agree(ours, &answers[&number], &query.destination) {
                let kernels = &answers[&number];
                wrong.push(format!(
                    "scene {seed}: {}\n  ours {ours:?}\n  kernel {kernels:?}",
                    query.line
                ));
            }
        }
    }
    println!("{all} packets, {} otherwise, {open} open", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {all}\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
    assert!(scenes == 0 || all > 0 && open * 50 < all);
}

#[test]
fn the_kernel_sends_packets_where_we_do() {
    let (mut wrong, mut known, mut all) = (Vec::new(), 0, 0);
    let scenes = scenes();
    for seed in 0..scenes {
        let mut draw = Draw(1000 + seed);
        let mut queries: Vec<Query> = (0..250).map(|_| query(&mut draw)).collect();
        for query in &mut queries {
            // A source that the host has, or none.
            let (number, is_v6) = (draw.below(3), query.destination.contains(':'));
            query.source =
                if is_v6 { format!("2001:db8:{number}::1") } else { format!("10.{number}.0.1") };
            let Query { destination, source, tos, mark, port, .. } = query;
            query.line = format!(
                "route get {destination} from {source} tos {tos:#x} mark {mark} ipproto udp sport 999 dport {port}"
            );
        }
        let (host, answers) = ask(&mut draw, &queries);
        for (number, query) in (1..).zip(&queries) {
            let packet = Outgoing {
                source: query.source.parse().unwrap(),
                destination: query.destination.parse().unwrap(),
                output: None,
                tos: Some(query.tos),
                mark: Some(query.mark),
                protocol: Some(17),
                ports: Some([999, query.port]),
            };
            let kernels = &answers[&number];
            let after = |line: &str, name: &str| {
                line.split_whitespace().skip_while(|word| *word != name).nth(1).map(str::to_owned)
            };
            all += 1;
            let is_right = match (host.route_out(&packet), kernels) {
                (Routed::Forward { output: None, .. } | Routed::Unknown(_), _) => true,
                (Routed::Forward { output, .. }, Ok(line)) => {
                    known += 1;
                    output.map(str::to_owned) == after(line, "dev")
                }
                (Routed::Refused(_), answer) => {
                    answer.as_ref().is_ok_and(|line| line.contains("error")) || answer.is_err()
                }
                _ => false,
            };
            if !is_right {
                let ours = host.route_out(&packet);
                wrong.push(format!(
                    "scene {seed}: {}\n  ours {ours:?}\n  kernel {kernels:?}",
                    query.line
                ));
            }
        }
    }
    println!("{all} packets, {} otherwise, {known} known", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {all}\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
    assert!(scenes == 0 || known * 2 > all);
}
