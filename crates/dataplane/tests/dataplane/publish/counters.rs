//! Counters by the identity of rules and policies.

use dataplane::publish::Published;
use rules::model::{Family, Hook};

use super::{change, published, rules, ruleset, walk};

fn packets(published: &Published) -> Vec<u64> {
    let snapshot = published.snapshot().unwrap();
    let rules = (0..).map_while(|at| rules(&snapshot.program).rule("mangle", "PREROUTING", at));
    rules.map(|rule| snapshot.rule(rule).packets).collect()
}

fn policy(published: &Published) -> u64 {
    published.snapshot().unwrap().policy(Family::Ipv4, "mangle", Hook::Prerouting).packets
}

fn replace(published: &Published, text: &str) {
    let number = published.program().number();
    published.replace(number, ruleset(text)).unwrap();
}

const THREE: &str = "*mangle\n:PREROUTING ACCEPT [100:1]\n[7:70] -A PREROUTING -p udp\n\
                     -A PREROUTING -s 10.0.0.1\n-A PREROUTING -s 10.9.0.1\nCOMMIT\n";

#[test]
fn they_start_where_the_text_says_and_stay_through_updates() {
    let published = published(THREE);
    let mut worker = published.worker();
    walk(&mut worker.burst());
    assert_eq!((packets(&published), policy(&published)), (vec![8, 1, 0], 101));
    change(&published, "-I PREROUTING 2 -p udp");
    walk(&mut worker.burst());
    assert_eq!((packets(&published), policy(&published)), (vec![9, 1, 2, 0], 102));
    change(&published, "-D PREROUTING 1");
    assert_eq!(packets(&published), [1, 2, 0]);
    change(&published, "-A PREROUTING -p udp -c 5 50");
    assert_eq!(packets(&published), [1, 2, 0, 5]);
    walk(&mut worker.burst());
    assert_eq!(packets(&published), [2, 3, 0, 6]);
}

#[test]
fn a_rule_that_is_deleted_and_added_again_starts_at_zero() {
    let published = published(THREE);
    let mut worker = published.worker();
    for _ in 0..5 {
        walk(&mut worker.burst());
        change(&published, "-D PREROUTING -s 10.0.0.1");
        walk(&mut worker.burst());
        change(&published, "-A PREROUTING -s 10.0.0.1");
        assert_eq!(packets(&published).last(), Some(&0));
    }
    assert_eq!(packets(&published), [17, 0, 0]);
}

#[test]
fn a_reload_keeps_them_but_where_it_brings_some() {
    let published = published(THREE);
    let mut worker = published.worker();
    walk(&mut worker.burst());
    let text = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s 10.9.0.1\n\
                [3:30] -A PREROUTING -s 10.0.0.1\n-A PREROUTING -p udp\nCOMMIT\n";
    replace(&published, text);
    assert_eq!((packets(&published), policy(&published)), (vec![0, 3, 8], 101));
    walk(&mut worker.burst());
    replace(&published, &text.replace("ACCEPT [0:0]", "ACCEPT [9:9]").replace("[3:30] ", ""));
    assert_eq!((packets(&published), policy(&published)), (vec![0, 4, 9], 9));
    walk(&mut worker.burst());
    assert_eq!((packets(&published), policy(&published)), (vec![0, 5, 10], 10));
}

#[test]
fn a_burst_of_old_rules_does_not_count_for_a_policy_set_anew() {
    let published = published(THREE);
    let (mut worker, mut other) = (published.worker(), published.worker());
    let mut burst = worker.burst();
    walk(&mut burst);
    replace(&published, &THREE.replace("[100:1]", "[20:1]"));
    walk(&mut burst);
    walk(&mut other.burst());
    drop(burst);
    assert_eq!(policy(&published), 21);
}

#[test]
fn policies_of_a_table_that_was_gone_start_at_zero() {
    let published = published(THREE);
    let mut worker = published.worker();
    walk(&mut worker.burst());
    replace(&published, "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n");
    replace(
        &published,
        "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n*mangle\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n",
    );
    assert_eq!(policy(&published), 0);
    walk(&mut worker.burst());
    assert_eq!(policy(&published), 1);
}

#[test]
fn arrays_grow_under_a_burst() {
    let published = published(THREE);
    let mut worker = published.worker();
    let mut burst = worker.burst();
    walk(&mut burst);
    let many: Vec<String> = (0..5000).map(|_| "-A PREROUTING -s 10.0.0.1".to_owned()).collect();
    change(&published, &many.join("\n"));
    change(&published, "-A PREROUTING -p udp");
    walk(&mut burst);
    drop(burst);
    walk(&mut worker.burst());
    let found = packets(&published);
    assert_eq!((found[0], found[1], found[3], found[5003]), (10, 3, 1, 1));
    assert!(found[3..].iter().all(|packets| *packets == 1));
}

/// A worker makes the state of a match when a packet first gets there, and keeps it through updates.
#[test]
fn matches_that_remember_come_with_updates() {
    let published = published(THREE);
    let mut worker = published.worker();
    walk(&mut worker.burst());
    change(&published, "-A PREROUTING -m statistic --mode nth --every 2 --packet 0");
    for expected in [1, 1, 2, 2, 3] {
        walk(&mut worker.burst());
        assert_eq!(packets(&published).last(), Some(&expected));
        change(&published, "-I PREROUTING 1 -p udp");
    }
}
