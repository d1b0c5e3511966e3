//! Candidate rules in shadow: they affect no traffic, and differing verdicts are counted.

use std::thread;
use std::time::Duration;

use packet::craft::Message;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::{Left, Rig, craft, datagram, filter, finish, send, syn};

/// Attempts at a run in which the worker never has too much to do.
const ATTEMPTS: usize = 20;

/// What leaves under rules, with or without a shadow; and the report of the shadow. No frame is left out.
fn tried(rules: &str, shadow: Option<&str>, frames: &[Vec<u8>]) -> (Left, Value) {
    for _ in 0..ATTEMPTS {
        let (run, mut far) = Rig::new(rules).start();
        if let Some(shadow) = shadow {
            run.shadow(vec![shadow.to_owned()]).expect("rules");
        }
        for (at, frames) in frames.chunks(16).enumerate() {
            send(&mut far[0], frames);
            let sent = (16 * at + frames.len()) as u64;
            let handled = || {
                let counted = run.status().directions[0].frames;
                counted.received == sent && counted.balances()
            };
            while !handled() {
                thread::sleep(Duration::from_micros(200));
            }
        }
        let told = run.shadow_json();
        let left = finish(run, far);
        if told["left_out"].as_u64().unwrap_or(0) == 0 {
            return (left, told);
        }
    }
    panic!("a worker had too much to do in each of {ATTEMPTS} attempts");
}

#[test]
fn what_differs_is_counted_by_what_decided_and_shown_by_its_first_packet() {
    let rules = filter("DROP", "-A FORWARD -p tcp --dport 22:80 -j ACCEPT\n");
    let shadow = filter(
        "ACCEPT",
        "-A FORWARD -p tcp --dport 80 -j ACCEPT\n-A FORWARD -p tcp --dport 22 -j DROP\n",
    );
    let frames = [syn(80), syn(22), syn(443), syn(22), syn(22)];
    let (left, told) = tried(&rules, Some(&shadow), &frames);
    assert_eq!(left.frames[1], [syn(80), syn(22), syn(22), syn(22)], "those in force decide");
    assert_eq!((&told["packets"], &told["differ"]), (&5.into(), &4.into()), "{told:#}");
    let pairs = told["pairs"].as_array().expect("pairs");
    let [first, second] = &pairs[..] else { panic!("{told:#}") };
    assert_eq!(first["packets"], 3);
    assert_eq!(first["in_force"]["text"], "-A FORWARD -p tcp -m tcp --dport 22:80 -j ACCEPT");
    assert_eq!(first["shadow"]["text"], "-A FORWARD -p tcp -m tcp --dport 22 -j DROP");
    assert_eq!(
        (&first["shadow"]["verdict"], &first["shadow"]["line"]),
        (&"drop".into(), &4.into())
    );
    let hex: String = syn(22).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (&first["example"]["frame"], &first["example"]["in"]),
        (&hex.into(), &"left".into())
    );
    assert_eq!(
        (&second["packets"], &second["in_force"]["text"]),
        (&1.into(), &"policy of FORWARD".into())
    );
}

#[test]
fn where_a_packet_would_go_instead_differs_too() {
    let nat = |to: &str| {
        format!(
            "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -j DNAT --to-destination {to}\nCOMMIT\n"
        )
    };
    let frames = [datagram(["10.0.0.7", "10.0.0.9"], 53)];
    let (left, told) = tried(&nat("10.0.0.10"), Some(&nat("10.0.0.11")), &frames);
    assert_eq!(left.frames[1][0][30..34], [10, 0, 0, 10]);
    assert_eq!(told["pairs"][0]["in_force"]["leaves_as"], "10.0.0.7 > 10.0.0.10");
    assert_eq!(told["pairs"][0]["shadow"]["leaves_as"], "10.0.0.7 > 10.0.0.11");
    let (_, told) = tried(&nat("10.0.0.10"), Some(&filter("ACCEPT", "")), &frames);
    assert_eq!(told["differ"], 1, "no translation: {told:#}");
    let (_, told) = tried(&nat("10.0.0.10"), Some(&nat("10.0.0.10")), &frames);
    assert_eq!(told["differ"], 0, "{told:#}");
}

/// Connections begin as copies of those in force.
#[test]
fn a_connection_that_there_was_before_is_known() {
    let rules = filter(
        "DROP",
        "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n-A FORWARD -i left -j ACCEPT\n",
    );
    let (run, mut far) = Rig::new(&rules).start();
    let handled = |from: usize, frames: u64| {
        while run.status().directions[from].frames.received < frames
            || !run.status().directions[from].frames.balances()
        {
            thread::sleep(Duration::from_micros(200));
        }
    };
    send(&mut far[0], &[datagram(["10.0.0.7", "10.0.0.9"], 53)]);
    handled(0, 1);
    run.shadow(vec![filter("DROP", "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n")])
        .expect("rules");
    let reply = craft(["10.0.0.9", "10.0.0.7"], Message::udp(53, 4000)).frame();
    let other = craft(["10.0.0.9", "10.0.0.7"], Message::udp(53, 4001)).frame();
    send(&mut far[1], &[reply, other]);
    handled(1, 2);
    let told = run.shadow_json();
    assert_eq!((&told["packets"], &told["differ"]), (&2.into(), &0.into()), "{told:#}");
    assert_eq!(finish(run, far).frames[0].len(), 1);
}

#[test]
fn what_cannot_be_tried_is_refused_and_the_one_before_stays() {
    let (run, far) = Rig::new(&filter("ACCEPT", "")).start();
    run.shadow(vec![filter("DROP", "")]).expect("rules");
    let told = run.shadow(vec!["*filter\n-A NOWHERE -j ACCEPT\nCOMMIT\n".to_owned()]);
    assert!(told.expect_err("refused").starts_with("2:"), "line and column");
    assert_eq!(run.shadow_json()["active"], true);
    finish(run, far);
}

/// Rules with memories of their own: what they remember depends on the packets that they saw.
const REMEMBERING: [&str; 5] = [
    "-A FORWARD -m statistic --mode nth --every 3 --packet 0 -j DROP\n",
    "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n",
    "-A FORWARD -m recent --name r --update --seconds 100 -j DROP\n",
    "-A FORWARD -p udp --dport 4001 -m recent --name r --set -j ACCEPT\n",
    "-A FORWARD -p udp --dport 4002 -j REJECT\n",
];

fn rules() -> impl Strategy<Value = String> {
    let rule = (0..REMEMBERING.len()).prop_map(|at| REMEMBERING[at]);
    (any::<bool>(), vec(rule, 0..5)).prop_map(|(accepts, rules)| {
        filter(if accepts { "ACCEPT" } else { "DROP" }, &rules.concat())
    })
}

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let frame = (0..3_usize, 4000..4004_u16).prop_map(|(from, port)| {
        datagram([["10.0.0.7", "10.0.0.8", "10.0.0.9"][from], "10.0.1.1"], port)
    });
    vec(frame, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A shadow never changes what leaves, and its report agrees with what its rules do in force.
    #[test]
    fn a_shadow_acts_on_nothing_and_counts_what_it_would_have_done(
        in_force in rules(),
        shadow in rules(),
        frames in frames(),
    ) {
        let (alone, _) = tried(&in_force, None, &frames);
        let (left, told) = tried(&in_force, Some(&shadow), &frames);
        prop_assert_eq!(&left.frames, &alone.frames);
        prop_assert_eq!(left.direction(0), alone.direction(0));
        // Packets differ in their time alone: the number of each kind shows which of them leave.
        let (by_shadow, _) = tried(&shadow, None, &frames);
        let passed = |left: &Left| left.frames[1].len() as i64;
        let pairs = told["pairs"].as_array().expect("pairs");
        let turned = |to: &str, from: &str| -> i64 {
            let of = |pair: &&Value| {
                (pair["shadow"]["verdict"] == to) && (pair["in_force"]["verdict"] == from)
            };
            pairs.iter().filter(of).map(|pair| pair["packets"].as_i64().unwrap_or(0)).sum()
        };
        let more = turned("accept", "drop") + turned("accept", "reject");
        let fewer = turned("drop", "accept") + turned("reject", "accept");
        prop_assert_eq!(passed(&left) + more - fewer, passed(&by_shadow), "{:#}", told);
    }
}
