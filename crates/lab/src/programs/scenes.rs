//! The scenes, and what each needs of this machine.
//!
//! A scene's text begins with what it shows. Seven kinds of its comments are read: `# needs: PROGRAM...`, `# one: DEVICE`
//! for the interface that is also recorded alone, `# cut: WHY` where that one shows segments of what the rules see whole,
//! `# device: KIND` for a kind of link that not every kernel has, `# unseen: FAMILY TABLE CHAIN NUMBER: WHY` (of nft: `nft inet fw CHAIN NUMBER`) for a rule whose
//! counter proves how many packets never reached a tap, `# inbound: WHY` where a recording of what came in leaves
//! more unknown than elsewhere, `# hidden: SHARE: WHY` where so many packets in a hundred depend on what no recording
//! shows.

use std::env;
use std::path::Path;
use std::process::Command;

/// A script and its name.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// As on the command line, and as the folder of its recording.
    pub name: &'static str,
    /// Shell functions for `stage.sh`.
    pub script: &'static str,
}

/// `"name"`, or `"name" = "part" "part"...` for a script of several parts, of which the first says what it shows.
macro_rules! scenes {
    ($($name:literal $(= $($part:literal)+)?),* $(,)?) => {
        &[$(Scene { name: $name, script: scenes!(@ $name $($($part)+)?) }),*]
    };
    (@ $name:literal) => {
        include_str!(concat!("scenes/", $name, ".sh"))
    };
    (@ $name:literal $($part:literal)+) => {
        concat!($(include_str!(concat!("scenes/", $part, ".sh"))),+)
    };
}

/// Every scene, the plain ones first.
pub const SCENES: &[Scene] = scenes![
    "router",
    "homenat",
    "docker",
    "strict",
    "ufw",
    "kube",
    "firewalld",
    "ipv6",
    "spoofed",
    "rpfilter" = "rpfilter" "spoofed",
    "broken",
    "midstream",
    "unlisted" = "unlisted" "midstream",
    "offload",
    "offload-in" = "offload-in" "offload",
    "offload-out" = "offload-out" "offload",
    "mtu",
    "fragments",
    "fragments-plain" = "fragments-plain" "fragments",
    "bridge",
    "arp",
    "sctp",
    "nft" = "nft" "router" "nft-tail",
    "dhcp",
    "policy",
    "nflog" = "nflog" "router" "nflog-tail",
    "vlan",
    "tproxy",
    "synproxy",
    "proxy",
    "vxlan",
    "natpools",
    "uplinks",
    "containers",
    "queue",
    "probes",
    "vpn",
    "groups",
    "changed",
    "nft-gateway",
    "nft-docker" = "nft-docker" "docker" "nft-docker-rules",
    "nft-firewalld" = "nft-firewalld" "firewalld" "nft-firewalld-rules",
    "nft-firewalld-own" = "nft-firewalld-own" "firewalld" "nft-firewalld-own-rules",
    "nft-fw4",
    "nft-libvirt",
    "nft-kube" = "nft-kube" "kube" "nft-kube-rules",
    "nft-three" = "nft-three" "router" "nft-three-rules",
    "nft-order" = "nft-order" "router" "nft-order-rules",
    "nft-unordered" = "nft-unordered" "router" "nft-order-rules" "nft-unordered-rules",
    "nft-xtables" = "nft-xtables" "router" "nft-xtables-rules",
];

/// Programs that every scene runs.
const ALWAYS: &[&str] = &[
    "unshare",
    "bash",
    "ip",
    "bridge",
    "ss",
    "sysctl",
    "tcpdump",
    "iptables-legacy-restore",
    "conntrack",
    "ipset",
];

impl Scene {
    /// The scene of this name.
    pub fn named(name: &str) -> Option<Self> {
        SCENES.iter().find(|scene| scene.name == name).copied()
    }

    /// A recording that was not made here: nothing is known of it.
    pub const FOREIGN: Self = Self { name: "foreign", script: "" };

    /// What it shows: its first lines of comment.
    pub fn about(&self) -> String {
        let lines = self.script.lines().map_while(|line| line.strip_prefix("# "));
        lines.take_while(|line| !line.starts_with("needs:")).collect::<Vec<_>>().join(" ")
    }

    fn notes(&self, key: &'static str) -> impl Iterator<Item = &'static str> {
        let script = self.script;
        script.lines().filter_map(move |line| line.strip_prefix("# ")?.strip_prefix(key))
    }

    /// Programs that it runs, and kinds of device that it makes, which this machine lacks.
    pub fn lacks(&self) -> Vec<&'static str> {
        let needed = self.notes("needs:").flat_map(str::split_whitespace);
        let programs =
            ALWAYS.iter().copied().chain(needed).filter(|program| !is_installed(program));
        programs.chain(self.notes("device: ").filter(|kind| !is_made(kind))).collect()
    }

    /// Whether what came in tells little here.
    pub fn is_open_inbound(&self) -> bool {
        self.notes("inbound:").next().is_some()
    }

    /// The interface whose recording is also replayed alone.
    pub fn one(&self) -> Option<&'static str> {
        self.notes("one: ").next()
    }

    /// Whether a rule asks for what that interface receives.
    pub fn comes_in_on_one(&self, rule: &str) -> bool {
        let rule = format!(" {} ", rule.replace("! -i", "!"));
        self.one().is_none_or(|device| {
            [format!(" -i {device} "), format!(" iifname \"{device}\" ")]
                .iter()
                .any(|test| rule.contains(test))
        })
    }

    /// Whether a rule asks for what leaves by that interface.
    pub fn leaves_by_one(&self, rule: &str) -> bool {
        let rule = format!(" {rule} ");
        self.one().is_some_and(|device| {
            [format!(" -o {device} "), format!(" oifname \"{device}\" ")]
                .iter()
                .any(|test| rule.contains(test))
        })
    }

    /// Whether that interface shows each segment of what the rules see in one piece.
    pub fn is_cut(&self) -> bool {
        self.notes("cut: ").next().is_some()
    }

    /// The packets in a hundred that may depend on what no recording shows of the host.
    pub fn hidden(&self) -> f64 {
        let note = self.notes("hidden: ").next().and_then(|note| note.split_once(": "));
        note.and_then(|(share, _)| share.parse().ok()).unwrap_or(0.0)
    }

    /// Rules that count packets which never reach a tap, as `FAMILY TABLE CHAIN NUMBER`, and why they do not.
    pub fn unseen(&self) -> Vec<(&'static str, &'static str)> {
        self.notes("unseen:").filter_map(|note| note.trim().split_once(": ")).collect()
    }
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).exists())
        || ["/usr/sbin", "/sbin"].iter().any(|dir| Path::new(dir).join(program).exists())
}

/// Whether this kernel makes such devices: tries in a namespace of its own.
fn is_made(kind: &str) -> bool {
    let make = format!(
        "ip link add under type dummy && ip link add link under name over type {kind} id 9"
    );
    let output = Command::new("unshare").args(["--net", "sh", "-c", &make]).output();
    output.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_says_what_it_shows_and_needs() {
        for scene in SCENES {
            assert!(!scene.about().is_empty(), "{}", scene.name);
            assert!(scene.script.contains("\n# needs: "), "{}", scene.name);
            for function in ["setup()", "rules()", "traffic()"] {
                assert!(scene.script.contains(function), "{}: {function}", scene.name);
            }
        }
    }

    #[test]
    fn a_rule_that_counts_the_unseen_has_a_reason() {
        for scene in SCENES {
            let notes = scene.notes("unseen:").count();
            assert_eq!(scene.unseen().len(), notes, "{}", scene.name);
            for (rule, _) in scene.unseen() {
                let words = if rule.starts_with("nft ") { 5 } else { 4 };
                assert_eq!(rule.split(' ').count(), words, "{}: {rule}", scene.name);
            }
        }
    }
}
