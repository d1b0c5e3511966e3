//! What reloads, and workers that come and go, leave behind: nothing, also where nobody asks for counters.

use rules::model::Family;

use super::{published, walk};

/// Rules that a reload replaces, all of them.
const RULES: usize = 2_000;
/// Memory that a run may be off by: lists that have grown, and what the allocator of the sums rounds up.
const SLACK: i64 = 256 << 10;

const EMPTY: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n";

/// Replaces all rules by others with states, none of which is in another one of these.
fn table(reload: usize) -> String {
    let rule = |at| {
        format!("-A PREROUTING -p udp --sport {at} -m limit --limit {}/hour\n", reload % 900 + 1)
    };
    let rules: String = (0..RULES).map(rule).collect();
    format!("*mangle\n:PREROUTING ACCEPT [0:0]\n-F PREROUTING\n{rules}COMMIT\n")
}

#[test]
fn reloads_leave_no_memory_behind() {
    let published = published(EMPTY);
    let mut workers: Vec<_> = (0..4).map(|_| published.worker()).collect();
    let mut reloads = |numbers: std::ops::Range<usize>| {
        let counted = allocation_counter::measure(|| {
            for number in numbers {
                let text = table(number);
                published.commit_text(published.program().number(), Family::Ipv4, &text).unwrap();
                for worker in &mut workers {
                    walk(&mut worker.burst());
                }
            }
        });
        counted.bytes_current
    };
    reloads(1..20);
    let left = reloads(20..120);
    assert!(published.held().places <= 2 * RULES, "{:?}", published.held());
    assert!(left < SLACK, "{left} bytes after 100 reloads of {RULES} rules");
}

#[test]
fn workers_that_are_gone_leave_no_memory_behind() {
    let published = published(EMPTY);
    published.commit_text(1, Family::Ipv4, &table(0)).unwrap();
    let come_and_go = |many: usize| {
        let counted = allocation_counter::measure(|| {
            for _ in 0..many {
                walk(&mut published.worker().burst());
            }
        });
        counted.bytes_current
    };
    come_and_go(100);
    let left = come_and_go(1_000);
    assert!(left < SLACK, "{left} bytes after 1,000 workers");
}
