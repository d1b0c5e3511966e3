//! What waits, for how long, and what it says then.

use std::sync::Arc;
use std::time::Instant;

use dataplane::publish::{MOST_REVISIONS, PATIENCE, PublishError};

use super::{change, published, walk};

const START: &str = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp\nCOMMIT\n";

#[test]
fn a_stale_number_is_refused_with_the_current_one() {
    let published = published(START);
    assert_eq!(change(&published, "-A PREROUTING -p tcp"), 2);
    let stale = PublishError::Stale { expected: 1, current: 2 };
    assert_eq!(published.commit_text(1, "*mangle\nCOMMIT\n"), Err(stale.clone()));
    assert_eq!(published.commit(1, |_| Ok(())), Err(stale.clone()));
    assert_eq!(stale.to_string(), "expected revision 1 to be current, found 2");
}

#[test]
fn a_worker_that_does_not_move_on_is_named() {
    let published = published(START);
    let resting = published.worker();
    let mut worker = published.worker();
    let mut burst = worker.burst();
    for _ in 0..MOST_REVISIONS {
        change(&published, "-A PREROUTING -p tcp");
    }
    let (number, start) = (published.revision().number(), Instant::now());
    let behind = published.commit(number, |_| Ok(())).unwrap_err();
    assert!(start.elapsed() >= PATIENCE);
    let PublishError::Behind { worker: Some(1), revisions: MOST_REVISIONS, .. } = behind else {
        panic!("{behind:?}");
    };
    assert_eq!(published.revision().number(), number, "nothing has changed");
    assert_eq!(burst.revision().number(), 1);
    assert!(published.snapshot().is_err());
    walk(&mut burst);
    drop(burst);
    change(&published, "-A PREROUTING -p tcp");
    let snapshot = published.snapshot().unwrap();
    let rule = snapshot.revision.rule("mangle", "PREROUTING", 0).unwrap();
    assert_eq!(snapshot.rule(rule).packets, 1);
    drop(resting);
}

#[test]
fn workers_at_rest_hold_on_to_nothing() {
    let published = published(START);
    let mut worker = published.worker();
    walk(&mut worker.burst());
    for _ in 0..2 * MOST_REVISIONS {
        let old = Arc::downgrade(&published.revision());
        change(&published, "-A PREROUTING -p tcp");
        assert_eq!(old.strong_count(), 0);
    }
}

#[test]
fn whoever_holds_a_revision_without_a_worker_is_told_apart() {
    let published = published(START);
    let held = published.revision();
    for _ in 0..MOST_REVISIONS {
        change(&published, "-A PREROUTING -p tcp");
    }
    let behind = published.commit(65, |_| Ok(())).unwrap_err();
    assert!(matches!(behind, PublishError::Behind { worker: None, .. }), "{behind:?}");
    drop(held);
    assert_eq!(published.commit(65, |_| Ok(())), Ok(66));
}

#[test]
fn what_is_refused_changes_nothing() {
    let published = published(START);
    let text = "*mangle\n-A PREROUTING -p tcp\n-A nowhere\nCOMMIT\n";
    let refused = published.commit_text(1, text).unwrap_err();
    assert!(matches!(refused, PublishError::Load(_)), "{refused:?}");
    let refused = published.commit(1, |transaction| {
        transaction.flush("mangle", None)?;
        transaction.flush("filter", None)
    });
    assert!(matches!(refused, Err(PublishError::Refused(_))), "{refused:?}");
    assert_eq!((published.revision().number(), published.revision().rule_count()), (1, 1));
}
