//! VLAN devices of two hosts, and tamis between them on the links that carry both. This machine's kernel may have no such
//! devices: a second one, in an emulated machine that is not part of this repository, has.

use std::path::Path;
use std::process::Command;

use crate::ran::{Scratch, TAMIS, skipped};

/// Two hosts with VLANs 5 and 6 between them; says what passes and what was counted. The first argument is the folder of a
/// configuration, the second `tamis`.
const SCRIPT: &str = r#"
modprobe -a 8021q veth af_packet 2>/dev/null
for n in a m b; do ip netns add $n; done
ip link add a0 netns a type veth peer name m0 netns m
ip link add b0 netns b type veth peer name m1 netns m
for end in a0:a:1 b0:b:2; do
    IFS=: read device host last <<<"$end"
    ip -n $host link set $device up
    for id in 5 6; do
        ip -n $host link add link $device name v$id type vlan id $id || { echo none; exit; }
        ip -n $host addr add 10.$id.0.$last/24 dev v$id
        ip -n $host link set v$id up
    done
done
ip -n m link set m0 up
ip -n m link set m1 up
cd "$1"
ip netns exec m "$2" run live.toml >/dev/null 2>said &
for i in {1..300}; do grep -q ready said 2>/dev/null && break; sleep 0.1; done
for id in 5 6; do
    ip netns exec a ping -c 2 -W 5 10.$id.0.2 >/dev/null && echo "$id passes" || echo "$id does not"
done
ip netns exec m "$2" ctl --socket c counters
"#;

#[test]
fn rules_see_into_the_tags_of_vlan_devices_and_a_bridge_s_rules_the_tags() {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/tools/other-kernel");
    if !kernel.exists() {
        return skipped("VLAN devices: there is no ../shared/tools/other-kernel");
    }
    let folder = Scratch::new("vlan");
    let device = |name, device| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"af_packet\"\ndevice = \"{device}\"\n")
    };
    let ports = [device("left", "m0"), device("right", "m1")].concat();
    folder.write(
        "live.toml",
        format!(
            "{ports}[[wire]]\nports = [\"left\", \"right\"]\n\
             [rules]\nip = \"rules.v4\"\nbridge = \"rules.bridge\"\n[control]\nsocket = \"c\"\n"
        ),
    );
    folder
        .write("rules.v4", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p icmp -j ACCEPT\nCOMMIT\n");
    folder.write(
        "rules.bridge",
        "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n\
         -A FORWARD -p 802_1Q --vlan-id 6 -j DROP\n",
    );
    let script = folder.write("vlan.sh", SCRIPT);
    let run = Command::new(kernel)
        .args(["-t", "300", "bash", &script, &folder.file("."), TAMIS])
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&run.stdout);
    if !run.status.success() || said.starts_with("none") {
        let why = String::from_utf8_lossy(&run.stderr);
        return skipped(&format!("VLAN devices: {} {why}", run.status));
    }
    let lines: Vec<&str> = said.lines().map(str::trim_start).collect();
    assert_eq!(lines[..2], ["5 passes", "6 does not"], "{said}");
    assert_eq!(
        lines[2],
        "4             336 ip filter -A FORWARD -p icmp -j ACCEPT  # rule 1 of FORWARD, line 3"
    );
    let dropped = "bridge filter -A FORWARD -p 802_1Q --vlan-id 6 -j DROP";
    let counters = lines[3].split_once(dropped).map(|(counters, _)| counters);
    assert!(counters.is_some_and(|counters| !counters.starts_with("0 ")), "{said}");
}
