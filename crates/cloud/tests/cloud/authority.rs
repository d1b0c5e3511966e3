//! The authority, the directory and the relay as processes on hosts of their own: what goes on without either of the first two, and what a
//! directory cannot do. Needs root, `ping`, `nft` and `dig`; without, it says so and skips.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use overlay::{Claims, Identity, Signer};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::namespaces::{Hosts, PUBLIC};
use crate::reached::{allow, answer, are_present};

const AS: &str = "203.0.115.1";
const RELAY: &str = "203.0.114.1";
const IDENTITIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("identities");

fn of(hosts: &Hosts, server: &str) -> String {
    hosts.folder.path().join(format!("{server}.toml")).display().to_string()
}

/// The line that `--init` printed for a server, with its own address and configuration.
fn line(hosts: &Hosts, printed: &str, server: &str, at: &str) -> String {
    let start = format!("tamis-cloud {server} ");
    let line = printed.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    let usual = format!("/etc/tamis/{server}.toml");
    format!("{server} {}", line.replacen(&usual, &of(hosts, server), 1).replace("ADDRESS", at))
}

/// Three servers, and nodes a, b and c, of which a may reach b, and b may reach c.
fn network(test: &str) -> Option<Hosts> {
    network_on(test, false, |_| {})
}

/// Such a network on hosts that `lay` has changed before nodes join, perhaps with a TCP port for those whose UDP is blocked.
pub(crate) fn network_on(test: &str, has_tcp: bool, lay: impl FnOnce(&Hosts)) -> Option<Hosts> {
    let mut hosts = Hosts::new(test, &["a", "b", "c"])?;
    hosts.add("trs", 114);
    hosts.add("as", 115);
    for (node, how) in [("a", "random"), ("b", "fully-random"), ("c", "")] {
        hosts.masquerades(node, how);
    }
    let config = hosts.config();
    let init = format!("nms {config} --init --public {PUBLIC}:51900 --domain home.internal");
    let printed = hosts.cloud(&format!("{init} --apart as trs"));
    allow(&hosts, "a", "b");
    allow(&hosts, "b", "c");
    let mut text = fs::read_to_string(&config).unwrap();
    for (server, at) in [("as", AS), ("trs", RELAY)] {
        text += &hosts.cloud_on(server, &line(&hosts, &printed, server, at));
    }
    fs::write(&config, text).unwrap();
    if has_tcp {
        let tables = [("cloud", "[cloud]\n"), ("as", "[as]\n"), ("trs", "[relay]\n")];
        for (server, table) in tables {
            let text = fs::read_to_string(of(&hosts, server)).unwrap();
            let with = text.replacen(table, &format!("{table}tcp = 443\n"), 1);
            fs::write(of(&hosts, server), with).unwrap();
        }
    }
    lay(&hosts);
    hosts.serve("cloud", "nms", &config);
    for server in ["as", "trs"] {
        hosts.serve(server, server, &of(&hosts, server));
    }
    let printed = enrol(&hosts, "a b c");
    for node in ["a", "b", "c"] {
        let joined = hosts.join_as(node, &printed);
        assert!(joined.status.success(), "{joined:?}");
        hosts.up(node);
    }
    hosts.wait("registrations", are_present);
    Some(hosts)
}

fn enrol(hosts: &Hosts, names: &str) -> String {
    hosts.cloud_on("as", &format!("enrol {names} --config {}", of(hosts, "as")))
}

/// Makes another node of c's host, which is not brought up.
fn joins(hosts: &Hosts, printed: &str) -> Output {
    let [key, toml] = ["key", "toml"].map(|it| hosts.node_config("c").with_extension(it));
    let kept: Vec<(PathBuf, Vec<u8>)> = [key, toml]
        .map(|path| {
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            (path, bytes)
        })
        .into();
    let joined = hosts.join_as("c", printed);
    kept.into_iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    joined
}

/// Whether a node has a session with its authority.
fn knows_authority(hosts: &Hosts, node: &str) -> bool {
    let config = hosts.node_config(node);
    let peers = hosts.does(node, &format!("tamis tunnel peers {}", config.display()));
    let row = peers.lines().find(|line| line.starts_with("authority")).unwrap().to_owned();
    !row.contains("never")
}

fn devices(hosts: &Hosts) -> String {
    hosts.cloud(&format!("devices --config {}", hosts.config()))
}

#[test]
fn the_authority_and_the_directory_each_go_on_without_the_other() {
    let Some(mut hosts) = network("authority") else { return };
    let (config, signing) = (hosts.config(), of(&hosts, "as"));
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    assert!(knows_authority(&hosts, "a"));

    // The directory says where the answer is, and has no key to sign with.
    let refused = hosts.asks_cloud(&format!("enrol d --config {config}"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("are the authority's"),
        "{refused:?}"
    );
    assert!(!hosts.folder.path().join("cloud/signer.key").exists());
    let listed = hosts.cloud_on("as", &format!("devices --config {signing}"));
    assert_eq!(listed.lines().filter(|line| line.ends_with("enrolled")).count(), 3, "{listed}");
    let log = hosts.cloud_on("as", &format!("log --config {signing}"));
    assert!(log.contains("a was enrolled") && log.contains("the directory is there"), "{log}");
    assert!(hosts.cloud(&format!("log --config {config}")).contains("the authority is there"));

    // Without the authority pings go on, a node begins again, and nobody is enrolled.
    let printed = enrol(&hosts, "d").replace("# d,", "# c,");
    hosts.kill("as");
    assert!(hosts.pings("a", "10.99.0.3"));
    let failed = joins(&hosts, &printed);
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("nobody is there"), "{failed:?}");
    hosts.wait("the end of the authority", |hosts| devices(hosts).contains("authority: it is not"));
    hosts.kill("b");
    hosts.up("b");
    hosts.wait("the node again", |hosts| hosts.pings("a", "10.99.0.3"));
    assert!(!knows_authority(&hosts, "b"));

    // Once it is back, identities are renewed and devices enrolled.
    hosts.serve("as", "as", &signing);
    hosts.wait("a renewal", |hosts| knows_authority(hosts, "b"));
    let joined = joins(&hosts, &printed);
    assert!(joined.status.success(), "{joined:?}");
    hosts.wait("the new node", |hosts| devices(hosts).lines().any(|line| line.starts_with("d ")));

    // Without the directory pings go on, and devices are enrolled and revoked: it hears of that once it is back.
    hosts.kill("cloud");
    assert!(hosts.pings("a", "10.99.0.3"));
    let joined = joins(&hosts, &enrol(&hosts, "e").replace("# e,", "# c,"));
    assert!(joined.status.success(), "{joined:?}");
    hosts.cloud_on("as", &format!("revoke b --config {signing}"));
    assert!(hosts.pings("a", "10.99.0.3"), "nobody has said so to a");
    hosts.serve("cloud", "nms", &config);
    hosts.wait("the end of b", |hosts| !hosts.pings("a", "10.99.0.3"));
    hosts.wait("what it missed", |hosts| {
        let listed = devices(hosts);
        let is = |name: &str, state: &str| {
            listed.lines().any(|line| line.starts_with(name) && line.ends_with(state))
        };
        is("b ", "revoked") && is("e ", "absent")
    });
}

/// Makes a stopped directory have identities of its own making, and believe in them.
fn corrupt(hosts: &Hosts, genuine: &str) {
    let made_up = Signer::of_seed(&[8; 32]).unwrap();
    let config = hosts.config();
    let text = fs::read_to_string(&config).unwrap();
    let other = text.replace(genuine, &made_up.key().to_string());
    assert_ne!(text, other);
    fs::write(&config, other).unwrap();
    let database = Database::create(hosts.folder.path().join("cloud/cloud.redb")).unwrap();
    let kept: Vec<Identity> = {
        let table = database.begin_read().unwrap().open_table(IDENTITIES).unwrap();
        let rows = table.iter().unwrap();
        rows.map(|row| Identity::from_bytes(row.unwrap().1.value()).unwrap()).collect()
    };
    assert_eq!(kept.len(), 3);
    let writing = database.begin_write().unwrap();
    {
        let mut table = writing.open_table(IDENTITIES).unwrap();
        for Identity { claims, .. } in kept {
            let identity = made_up.sign(Claims { expires: claims.expires + 60, ..claims });
            let name = identity.claims.name.clone();
            table.insert(name.as_str(), &*identity.to_bytes()).unwrap();
        }
    }
    writing.commit().unwrap();
}

#[test]
fn a_directory_that_makes_identities_up_is_refused_by_nodes() {
    let Some(mut hosts) = network("madeup") else { return };
    assert_eq!(hosts.dig("a", "b.home.internal", "A"), answer("NOERROR", "10.99.0.3"));
    hosts.wait("the first ping", |hosts| hosts.pings("a", "10.99.0.3"));
    let text = fs::read_to_string(hosts.config()).unwrap();
    let genuine = text.split("signer = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    hosts.kill("cloud");
    corrupt(&hosts, &genuine);
    hosts.serve("cloud", "nms", &hosts.config());
    let alarm = "alarm: the directory's word is not to be relied on: it is not signed";
    for node in ["a", "b", "c"] {
        hosts.wait("an alarm", |hosts| hosts.log(node).contains(alarm));
    }
    assert!(hosts.pings("a", "10.99.0.3"), "what was known stays");
    assert_eq!(hosts.dig("b", "c.home.internal", "A").0, "SERVFAIL", "and nothing is added");
    let peers = format!("tamis tunnel peers {}", hosts.node_config("b").display());
    assert!(!hosts.does("b", &peers).contains("c.home.internal"));
}
