//! Listings of nft as rules: what a whole ruleset says of a family that it does not name, and chains that see fragments.

use dataplane::FinalVerdict;
use host::Host;
use replay::spec::parse;
use replay::walk::WalkOptions;
use replay::why::of_conversation;
use rules::model::Family;

use crate::described::{on, story};
use crate::traced::nft;

const OF_IP: &str =
    "table ip t {\n\tchain c {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n";

/// A listing is all that the kernel has: without a table for it a packet meets no rule.
#[test]
fn a_family_without_tables_in_a_listing_has_no_rules() {
    let four = "in=eth0 udp 10.0.0.1:5 > 10.0.0.2:53 path=input";
    let six = "in=eth0 udp [2001:db8::1]:5 > [2001:db8::2]:53 path=input";
    for (text, dropped, free) in
        [(OF_IP.to_owned(), four, six), (OF_IP.replace("table ip ", "table ip6 "), six, four)]
    {
        let (rules, setup) = (nft(&text), on(Host::default()));
        assert_eq!(rules.len(), 2);
        let told = story(&rules, &setup, dropped).text(false);
        assert!(told.ends_with("DROP by L2 policy drop of ip t c\n") || dropped == six, "{told}");
        let free = story(&rules, &setup, free);
        assert!(matches!(free.verdict(), FinalVerdict::Accept(_)), "{}", free.text(false));
        let text = free.text(false);
        assert!(text.ends_with("ACCEPT: no chain is attached on its way\n"), "{text}");
    }
    // Of a part that is asked for, or with other rules, a listing says nothing of the rest.
    let folder = tempfile::tempdir().unwrap();
    let [listing, saved] =
        ["r.nft", "r.v6"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&listing, OF_IP).unwrap();
    std::fs::write(&saved, "*filter\n:INPUT DROP [0:0]\nCOMMIT\n").unwrap();
    let families = |options: WalkOptions| -> Vec<(Family, usize)> {
        let files = options.open(&listing).unwrap();
        files.iter().map(|file| (file.ruleset.family, file.ruleset.tables.len())).collect()
    };
    let table = WalkOptions { table: Some("ip t".into()), ..WalkOptions::default() };
    assert_eq!(families(table), [(Family::Ipv4, 1)]);
    let family = WalkOptions { family: Some(Family::Ipv4), ..WalkOptions::default() };
    assert_eq!(families(family), [(Family::Ipv4, 1)]);
    let beside = WalkOptions { rules6: Some(saved), ..WalkOptions::default() };
    assert_eq!(families(beside), [(Family::Ipv4, 1), (Family::Ipv6, 1)]);
    let family = WalkOptions { family: Some(Family::Ipv6), ..WalkOptions::default() };
    assert!(family.open(&listing).is_err());
}

/// Chains before -400 see each fragment, others the packet that they make.
#[test]
fn chains_before_defragmentation_see_fragments() {
    let rules = |priority: i32, rule: &str| {
        nft(&format!(
            "table inet t {{\nchain early {{\ntype filter hook prerouting priority {priority};\n{rule}\n}}\n\
             chain late {{\ntype filter hook input priority 0;\nct state invalid drop\nmeta mark 7 drop\n}}\n}}\n"
        ))
    };
    let told = |priority: i32, rule: &str| -> [String; 2] {
        let [first, last] = ["1:5 > 10.0.0.2:53 frag=0+ len=44", "> 10.0.0.2 frag=24 len=44"];
        let first =
            parse(&format!("in=eth0 udp 10.0.0.1:{} path=input id=7", first.replace("1:5", "5")))
                .unwrap();
        let last = parse(&format!("in=eth0 17 10.0.0.1 {last} path=input id=7")).unwrap();
        let rules = rules(priority, rule);
        let setup = on(Host::default());
        let alone = of_conversation(&rules, &setup, &[], &first, None).text(false);
        let text = of_conversation(&rules, &setup, &[first], &last, None).text(false);
        [alone, text].map(|text| text.lines().last().unwrap().to_owned())
    };
    let later = "ip frag-off & 0x1fff != 0 drop";
    let [first, last] = told(-450, later);
    assert!(first.starts_with("SKIP: a fragment that waits"), "{first}");
    assert!(last.starts_with("DROP by L4 "), "{last}");
    let [_, last] = told(-400, later);
    assert!(last.starts_with("ACCEPT by L6 policy"), "{last}");
    // What is dropped completes nothing.
    let [first, last] = told(-450, "udp dport 53 drop");
    assert!(first.starts_with("DROP by L4 "), "{first}");
    assert!(last.starts_with("SKIP: a fragment that waits"), "{last}");
    // The mark of the first one is the packet's.
    let [_, last] = told(-450, "ip frag-off & 0x1fff == 0 meta mark set 7");
    assert!(last.starts_with("DROP by L9 "), "{last}");
    let [_, last] = told(-450, "ip frag-off & 0x1fff != 0 meta mark set 7");
    assert!(last.starts_with("ACCEPT by L6 policy"), "{last}");
}
