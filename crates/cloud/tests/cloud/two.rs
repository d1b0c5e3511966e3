//! Two directories on hosts of their own that share etcd: either is killed, and etcd too. Needs root, `ping`, `nft`, `dig` and etcd;
//! without, it says so and skips.

use std::fs;
use std::process::Output;

use crate::etcd::Server;
use crate::namespaces::{Hosts, PUBLIC};
use crate::reached::{allow, answer, join_all};

const SECOND: &str = "203.0.114.1";
const RELAY: &str = "203.0.115.1";
/// Where etcd is asked: on the host that is between all.
const ETCD: [&str; 2] = ["203.0.113.254:2379", "203.0.113.254:2380"];

fn config(hosts: &Hosts, host: &str) -> String {
    match host {
        "cloud" => hosts.config(),
        _ => hosts.folder.path().join("second/cloud.toml").display().to_string(),
    }
}

/// Two directories, the first of which serves, with nodes a, b and c, of which a may reach b, and b may reach c; the relay is of their
/// processes, or on a host of its own.
fn network(test: &str, is_apart: bool) -> Option<(Hosts, Server)> {
    let mut hosts = Hosts::new(test, &["a", "b", "c"])?;
    hosts.add("second", 114);
    for (node, how) in [("a", "random"), ("b", "fully-random"), ("c", "")] {
        hosts.masquerades(node, how);
    }
    let before = ["ip", "netns", "exec", &hosts.full("net")].map(str::to_owned).to_vec();
    let etcd = Server::new(before, ETCD.map(str::to_owned))?;
    let (first, server) = (hosts.config(), if is_apart { "nms" } else { "all" });
    let init = format!("{server} {first} --init --public {PUBLIC}:51900 --domain home.internal");
    let printed = hosts.cloud(&init);
    allow(&hosts, "a", "b");
    allow(&hosts, "b", "c");
    let folder = hosts.folder.path();
    fs::create_dir_all(folder.join("second/cloud")).unwrap();
    for key in ["cloud.key", "signer.key"] {
        fs::copy(folder.join("cloud").join(key), folder.join("second/cloud").join(key)).unwrap();
    }
    let mut text = fs::read_to_string(&first).unwrap();
    if is_apart {
        text += &relay(&mut hosts, &printed);
    }
    for (host, [own, other]) in [("cloud", [PUBLIC, SECOND]), ("second", [SECOND, PUBLIC])] {
        let public = format!("public = \"{own}:51900\"\nalso = [\"{other}:51900\"]");
        let with = text.replacen(&format!("public = \"{PUBLIC}:51900\""), &public, 1);
        let with = with + &format!("[etcd]\nendpoints = [\"http://{}\"]\n", ETCD[0]);
        fs::write(config(&hosts, host), with).unwrap();
    }
    hosts.serve("cloud", server, &first);
    waits(&mut hosts, "second", (server, PUBLIC));
    if is_apart {
        hosts.serve("trs", "trs", &hosts.folder.path().join("trs.toml").display().to_string());
    }
    join_all(&mut hosts);
    Some((hosts, etcd))
}

/// Makes a relay on a host of its own, which knows both directories; returns what they need of it.
fn relay(hosts: &mut Hosts, printed: &str) -> String {
    hosts.add("trs", 115);
    let config = hosts.folder.path().join("trs.toml");
    let line = printed.lines().find_map(|line| line.strip_prefix("tamis-cloud trs ")).unwrap();
    let line = line.replacen("/etc/tamis/trs.toml", &config.display().to_string(), 1);
    let its = hosts.cloud_on("trs", &format!("trs {}", line.replace("ADDRESS", RELAY)));
    let text = fs::read_to_string(&config).unwrap();
    let public = format!("public = \"{PUBLIC}:51900\"");
    let both = format!("public = [\"{PUBLIC}:51900\", \"{SECOND}:51900\"]");
    assert!(text.contains(&public));
    fs::write(&config, text.replace(&public, &both)).unwrap();
    its
}

/// Starts a directory while the other one is in charge.
fn waits(hosts: &mut Hosts, host: &str, (server, other): (&str, &str)) {
    hosts.begin(host, server, &config(hosts, host));
    let says = format!("the directory at {other}:51900 is in charge: this one waits");
    hosts.wait("a directory that waits", |hosts| hosts.log(host).contains(&says));
}

fn asks(hosts: &Hosts, host: &str, line: &str) -> Output {
    hosts.asks_cloud_on(host, &format!("{line} --config {}", config(hosts, host)))
}

/// Whether a directory lists all nodes as there.
fn has_all(hosts: &Hosts, host: &str) -> bool {
    let listed = String::from_utf8(asks(hosts, host, "devices").stdout).unwrap();
    listed.lines().filter(|line| line.ends_with("present")).count() == 3
}

/// Asks for something that is refused, for this reason.
fn refused(hosts: &Hosts, host: &str, line: &str, why: &str) {
    let refused = asks(hosts, host, line);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains(why), "{refused:?}");
}

/// Two nodes reach each other by their names, which are what they were.
fn reaches(hosts: &Hosts, what: &str) {
    hosts.wait(what, |hosts| {
        hosts.dig("a", "b.home.internal", "A") == answer("NOERROR", "10.99.0.3")
            && hosts.pings("a", "10.99.0.3")
    });
    assert_eq!(hosts.dig("b", "a.home.internal", "A"), answer("NOERROR", "10.99.0.2"));
    assert_eq!(hosts.dig("a", "c.home.internal", "A"), answer("NXDOMAIN", ""));
}

#[test]
fn either_of_two_directories_may_die_and_etcd_may_be_away() {
    let Some((mut hosts, mut etcd)) = network("two", false) else { return };
    reaches(&hosts, "the first ping");
    refused(&hosts, "second", "enrol d", &format!("{PUBLIC}:51900 is in charge"));

    // The second one takes over, with all that the first one had acknowledged.
    hosts.kill("cloud");
    hosts.wait("the second directory", |hosts| has_all(hosts, "second"));
    reaches(&hosts, "a ping by the second relay");
    let line = format!("enrol d --config {}", config(&hosts, "second"));
    let printed = hosts.cloud_on("second", &line);
    assert!(printed.contains(&format!("tamis://{SECOND}:51900,{PUBLIC}:51900/")), "{printed}");

    // Without etcd a node begins again and reaches others, and what would be to be kept is refused.
    etcd.kill();
    hosts.wait("word of it", |hosts| hosts.log("second").contains("etcd does not answer"));
    refused(&hosts, "second", "enrol e", "etcd does not answer");
    refused(&hosts, "second", "revoke c", "nothing is changed");
    hosts.kill("a");
    hosts.up("a");
    reaches(&hosts, "a node that begins without etcd");
    let [key, toml] = ["key", "toml"].map(|it| hosts.node_config("c").with_extension(it));
    hosts.kill("c");
    [&key, &toml].into_iter().for_each(|path| fs::remove_file(path).unwrap());
    let printed = printed.replace("# d,", "# c,");
    let joined = hosts.join_as("c", &printed);
    assert_eq!(joined.status.code(), Some(2), "{joined:?}");
    let why = "nothing can be kept now of who joins";
    assert!(String::from_utf8_lossy(&joined.stderr).contains(why), "{joined:?}");

    // With etcd it joins by the same key: as d, which has an address of its own.
    etcd.start();
    hosts.wait("word of it", |hosts| hosts.log("second").contains("etcd answers again"));
    let joined = hosts.join_as("c", &printed);
    assert!(String::from_utf8_lossy(&joined.stdout).contains("10.99.0.5"), "{joined:?}");
    hosts.up("c");
    hosts.wait("the new node", |hosts| has_all(hosts, "second"));

    // The first one begins again, and takes over in its turn.
    waits(&mut hosts, "cloud", ("all", SECOND));
    refused(&hosts, "cloud", "devices", &format!("{SECOND}:51900 is in charge"));
    hosts.kill("second");
    hosts.wait("the first directory", |hosts| has_all(hosts, "cloud"));
    reaches(&hosts, "a ping by the first relay");
    let log = hosts.cloud(&format!("log --config {}", hosts.config()));
    assert!(log.contains("a was enrolled") && log.contains("d was enrolled"), "{log}");
}

#[test]
fn a_relay_apart_follows_who_is_in_charge_and_its_paths_go_on() {
    let Some((mut hosts, _etcd)) = network("twoapart", true) else { return };
    reaches(&hosts, "the first ping");
    hosts.kill("cloud");
    let mut lost = 0;
    hosts.wait("the second directory", |hosts| {
        lost += u32::from(!hosts.pings("a", "10.99.0.3"));
        has_all(hosts, "second")
    });
    assert_eq!(lost, 0, "pings by the relay while nobody serves");
    // The relay carries a path that the second one has made.
    hosts.wait("another pair", |hosts| {
        hosts.dig("b", "c.home.internal", "A") == answer("NOERROR", "10.99.0.4")
            && hosts.pings("b", "10.99.0.4")
    });
    assert!(hosts.pings("a", "10.99.0.3"));
    let listed = String::from_utf8(asks(&hosts, "second", "devices").stdout).unwrap();
    assert!(listed.contains(&format!("relay {RELAY}")), "{listed}");
}
