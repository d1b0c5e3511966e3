//! The real nft as the judge: what it lists, as text and as JSON, is one model, and what tamis prints of it loads again
//! and is listed as before. Needs root, unshare and nft; without them the test says so and passes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nft::model::{KeyType, Position, Ruleset};
use nft::text::Printer;

/// What nft lists of a script in a network namespace of its own: text and JSON; why it refuses it.
fn listed(script: &str) -> Result<(String, String), String> {
    // Releases before 1.1 do not know words that 1.1 lists.
    let script =
        script.replace(" check missing", " oif missing").replace(" check exists", " oif exists");
    let script = script.replace("hook input priority srcnat", "hook input priority 100");
    let script = script.replace("hook output priority dstnat", "hook output priority -100");
    let list = "nft -f /dev/stdin && nft list ruleset && echo ==== && nft -j list ruleset";
    let mut run = Command::new("unshare");
    run.args(["-n", "sh", "-c", list])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = run.spawn().map_err(|why| why.to_string())?;
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(script.as_bytes())
        .map_err(|why| why.to_string())?;
    let output = child.wait_with_output().map_err(|why| why.to_string())?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    match out.split_once("====\n") {
        Some((text, json)) if output.status.success() => Ok((text.to_owned(), json.to_owned())),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn no_files(pattern: &str) -> Result<Vec<(String, String)>, String> {
    Err(format!("no file {pattern}"))
}

/// What stands in a table, by form and by sense: nft and tamis both take it, or neither does.
const TAKEN: [&str; 8] = [
    "chain c { accept; };",
    "chain c { type filter hook input priority 0; policy drop; accept; }",
    "chain c { }; chain d { }",
    "chain c { jump { accept; }; }",
    "set s { type ipv4_addr; elements = { 1.2.3.4 } }",
    "counter c { packets 1 bytes 2 }",
    "chain c { continue counter; }",
    "chain c { ip dscp 63 ip ttl { 1, 255 }; }",
];
const REFUSED: [&str; 14] = [
    "chain c { accept }",
    "chain c {\naccept }",
    "chain c { type filter hook input priority 0; policy drop }",
    "chain c { comment \"x\" }",
    "chain c { } chain d { }",
    "chain c { jump { accept } }",
    "set s { type ipv4_addr }",
    "chain c { accept counter; }",
    "chain c { reject counter; }",
    "chain c { tcp dport { } accept; }",
    "chain c { ip ttl 300; }",
    "chain c { tcp dport { 1 : drop }; }",
    "chain c { type route hook input priority 0; }",
    "chain c { type filter hook middle priority 0; }",
];

#[test]
fn what_nft_refuses_is_refused() {
    let table = |text: &str| format!("table ip t {{\n{text}\n}}\n");
    for (texts, is_taken) in [(&TAKEN[..], true), (&REFUSED[..], false)] {
        for text in texts {
            let read = nft::text::parse("text", &table(text), &no_files);
            assert_eq!(read.is_ok(), is_taken, "{text}: {read:?}");
        }
    }
    if let Err(why) = listed(&table(TAKEN[0])) {
        eprintln!("SKIPPED: needs root, unshare and nft: {why}");
        return;
    }
    for (texts, is_taken) in [(&TAKEN[..], true), (&REFUSED[..], false)] {
        for text in texts {
            let by_nft = listed(&table(text));
            assert_eq!(by_nft.is_ok(), is_taken, "{text}: {by_nft:?}");
        }
    }
}

fn bare(mut ruleset: Ruleset) -> Ruleset {
    for table in &mut ruleset.tables {
        table.handle = None;
        table.objects.iter_mut().for_each(|of| of.handle = None);
        table.flowtables.iter_mut().for_each(|of| of.handle = None);
        for set in &mut table.sets {
            set.handle = None;
            set.data = set.data.take().map(|data| KeyType::Types(data.types()));
            set.key = KeyType::Types(set.key.types());
            // JSON has whole seconds, and of older releases neither this flag nor comments of chains.
            set.flags &= !8;
            set.elements.iter_mut().for_each(|element| element.expires = None);
        }
        for chain in &mut table.chains {
            (chain.handle, chain.comment) = (None, None);
            // Nor the device of a base chain.
            chain.attached.iter_mut().for_each(|of| of.devices.clear());
            chain
                .rules
                .iter_mut()
                .for_each(|of| (of.handle, of.position) = (None, Position::default()));
        }
    }
    ruleset
}

fn holds(name: &str, text: &str, json: &str) {
    let model =
        nft::text::parse(name, text, &no_files).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let read =
        nft::json::read::ruleset(json).unwrap_or_else(|error| panic!("{name}: {error}\n{json}"));
    assert_eq!(bare(read), bare(model.clone()), "{name}: text and JSON differ\n{text}\n{json}");
    let printed = nft::text::print::ruleset(&model, Printer::default());
    let (again, _) = listed(&printed).unwrap_or_else(|why| panic!("{name}: {why}\n{printed}"));
    let still = |text: &str| {
        text.lines().filter(|line| !line.contains("expires")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(still(&again), still(text), "{name}: {printed}");
}

const RULESET: &str = r#"
table inet filter {
	counter web { }
	quota monthly { over 25 mbytes; }
	limit slow { rate 10/second; }
	ct helper ftp { type "ftp" protocol tcp; }
	set blocked { type ipv4_addr; flags interval, timeout; elements = { 1.2.3.0/24 timeout 1h comment "x", 9.9.9.1-9.9.9.7 timeout 2d } }
	set seen { type ipv4_addr . inet_service; size 1000; flags dynamic, timeout; timeout 5m; }
	set names { type ifname; elements = { "lo", "eth0" } }
	set counted { type inet_service; counter; elements = { 22, 80 counter packets 5 bytes 6 } }
	map marks { type ipv4_addr : mark; elements = { 1.1.1.1 : 0x1, 2.2.2.2 : 0x2 } }
	map jumps { type inet_service : verdict; elements = { 22 : jump ssh, 80 : accept, 443 : drop } }
	map ports { type ipv4_addr . inet_service : ipv4_addr . inet_service; elements = { 1.1.1.1 . 80 : 10.0.0.1 . 8080 } }
	chain ssh { comment "for ssh"; ct state new counter accept comment "c"; }
	chain input {
		type filter hook input priority filter - 1; policy drop;
		ct state vmap { established : accept, related : accept, invalid : drop }
		ip saddr @blocked drop
		iifname @names tcp dport vmap @jumps
		meta mark set ip saddr map @marks
		tcp flags & (fin|syn|rst|ack) == syn counter name "web"
		tcp flags syn tcp option maxseg size set 1400
		add @seen { ip saddr . tcp dport limit rate 3/minute }
		ip6 saddr fe80::/10 icmpv6 type { nd-neighbor-solicit, nd-router-advert } accept
		icmp type echo-request limit rate 5/second burst 10 packets accept
		ip dscp cs1 ip ttl > 5 ip length 100-200 meta length < 1500
		meta mark & 0xff == 0x10 ct mark set meta mark
		@th,16,16 { 53, 123 } @nh,8,8 0x10
		ct original ip daddr 10.0.0.0/8 ct status dnat ct direction reply
		fib saddr . iif oif missing drop
		fib daddr type { local, broadcast } log prefix "local: " level info flags all
		meta skuid 0 meta hour "09:00"-"17:00" meta day "Monday"
		ip protocol esp
		ct helper set "ftp" quota name "monthly" limit name "slow"
		numgen random mod 4 vmap { 0 : accept, 1-3 : continue }
		exthdr frag exists
		tcp option sack-perm missing
		socket transparent 1
		meta l4proto { tcp, udp } th dport 53 reject
		ip saddr 1.2.3.4 reject with tcp reset
	}
	chain dstnat {
		type nat hook prerouting priority dstnat;
		tcp dport 80 dnat ip to 10.0.0.1:8080
		tcp dport 443 dnat ip6 to [2001:db8::1]:443-450 persistent
		dnat ip to ip saddr . tcp dport map @ports
		udp dport 53 redirect to :5353
	}
	chain srcnat {
		type nat hook postrouting priority srcnat;
		oifname "eth*" masquerade random,persistent
		ip saddr 10.0.0.0/8 snat ip to 192.0.2.1-192.0.2.9
	}
	chain clamp { type filter hook forward priority mangle; tcp flags syn tcp option maxseg size set rt mtu; }
	chain raw { type filter hook prerouting priority raw; udp dport 53 notrack; }
}
table ip other {
	chain x { type route hook output priority mangle; ip dscp set af21 meta priority set 1:10 ; }
}
table netdev n {
	chain i { type filter hook ingress device "lo" priority 0; ip saddr 1.1.1.1 drop; }
}
"#;

#[test]
fn the_real_nft_lists_what_tamis_prints() {
    if let Err(why) = listed("table ip t { }") {
        eprintln!("SKIPPED: no nft in a network namespace: {why}");
        return;
    }
    let (text, json) = listed(RULESET).expect("a ruleset that loads");
    holds("RULESET", &text, &json);
    let model = nft::text::parse("RULESET", RULESET, &no_files).expect("the script");
    let (of_script, _) =
        listed(&nft::text::print::ruleset(&model, Printer::default())).expect("what was printed");
    let still = |text: &str| {
        text.lines().filter(|line| !line.contains("expires")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(still(&of_script), still(&text), "the script and its print");
    let examples = Path::new("/usr/share/doc/nftables/examples");
    let Ok(folder) = examples.read_dir() else { return };
    for path in folder
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "nft"))
    {
        let script = std::fs::read_to_string(&path).expect("an example");
        if let Ok((text, json)) = listed(&script) {
            holds(&path.display().to_string(), &text, &json);
        }
    }
}
