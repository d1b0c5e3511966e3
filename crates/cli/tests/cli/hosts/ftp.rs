//! FTP whose control and data connections are translated: the helper rewrites what the programs say to each other.

use super::{Cable, Hosts, LEFT, RIGHT, hits};

/// To the left host the server is 10.9.0.50; to the server the left host is 10.9.0.160, which is longer.
const RULES: &str = "*raw\n:PREROUTING ACCEPT [0:0]\n\
    -A PREROUTING -p tcp -m tcp --dport 21 -j CT --helper ftp\nCOMMIT\n\
    *nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
    -A PREROUTING -d 10.9.0.50/32 -j DNAT --to-destination 10.9.0.2\n\
    -A POSTROUTING -s 10.9.0.1/32 -o right -j SNAT --to-source 10.9.0.160\nCOMMIT\n\
    *filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -m conntrack --ctstate RELATED -m helper --helper ftp -j ACCEPT\n\
    -A FORWARD -i left -p tcp -m tcp --dport 21 -j ACCEPT\nCOMMIT\n";
const RULES_V6: &str = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

#[test]
fn ftp_goes_through_translation() {
    ftp("ftp-on", Cable::Veth { offloads: true });
    ftp("ftp-off", Cable::Veth { offloads: false });
    ftp("ftp-tun", Cable::Tun);
}

fn ftp(test: &str, cable: Cable) {
    let programs = ["ip", "ss", "sysctl", "ethtool", "curl", "vsftpd"];
    let Some(mut hosts) = Hosts::new(test, cable, &programs) else { return };
    hosts.wire(RULES, RULES_V6, "");
    known(&hosts);
    let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let config = config(&hosts, &sent);
    hosts.serve(2, "vsftpd", &[&config]);
    hosts.listens(2, 21);
    let got = hosts.folder.file("got");
    let ways = [
        &[][..],
        &["--disable-epsv"],
        &["--disable-eprt", "--ftp-port", "-"],
        &["--ftp-port", "-"],
    ];
    for way in ways {
        let _ = std::fs::remove_file(&got);
        let fetch = ["-sS", "-m", "30", "-o", &got, "ftp://10.9.0.50/file"];
        hosts.does(0, "curl", &[&fetch[..], way].concat());
        assert!(std::fs::read(&got).unwrap() == sent, "{way:?}: not what was sent");
    }
    let saved = hosts.counters();
    let related = "-A FORWARD -m conntrack --ctstate RELATED -m helper --helper ftp -j ACCEPT";
    assert_eq!(hits(&saved, related), ways.len() as u64, "one data connection each: {saved}");
    hosts.stop();
}

/// Nobody answers for the addresses that are only translated: a wire is no router, so hosts get permanent neighbour
/// entries for them.
fn known(hosts: &Hosts) {
    if hosts.cable == Cable::Tun {
        return;
    }
    let hardware = |place, device| {
        let said = hosts.does(place, "cat", &[&format!("/sys/class/net/{device}/address")]);
        said.trim().to_owned()
    };
    let (left, right) = (hardware(0, "a0"), hardware(2, "b0"));
    let neighbour = |place, address: &str, hardware: &str, device: &str| {
        hosts.does(place, "ip", &["neigh", "add", address, "lladdr", hardware, "dev", device]);
    };
    neighbour(0, "10.9.0.50", &right, "a0");
    neighbour(0, RIGHT, &right, "a0");
    neighbour(2, "10.9.0.160", &left, "b0");
    neighbour(2, LEFT, &left, "b0");
}

fn config(hosts: &Hosts, sent: &[u8]) -> String {
    use std::os::unix::fs::PermissionsExt;
    let folder = hosts.folder.path().join("ftp");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), sent).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o555)).unwrap();
    let root = folder.display();
    hosts.folder.write(
        "vsftpd.conf",
        format!(
            "listen=YES\nbackground=NO\nanonymous_enable=YES\nanon_root={root}\nsecure_chroot_dir={root}\n\
             run_as_launching_user=NO\nftp_username=daemon\nnopriv_user=nobody\nconnect_from_port_20=YES\n\
             xferlog_enable=NO\nseccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\nno_anon_password=YES\n"
        ),
    )
}
