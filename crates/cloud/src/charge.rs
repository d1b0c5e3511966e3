//! [`awaited`]: a directory that shares its store with another one waits until it is in charge.
//!
//! Contract: one of the directories of a network serves; the others have no socket of the tunnel, so nodes try the next place. A client
//! of the control socket hears meanwhile which one serves.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::control;
use crate::etcd::{Charge, Etcd, Taken, Trouble};

/// Time between two tries.
const AGAIN: Duration = Duration::from_millis(500);
/// How long nothing is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Waits until this directory, which is at `own`, is in charge; nothing if it is asked to end before.
pub(crate) fn awaited(etcd: &Etcd, own: &str, socket: &Path) -> Result<Option<Charge>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).context("signals")?;
    }
    // The configuration is read again once this directory is in charge.
    flag::register(SIGHUP, Arc::default()).context("signals")?;
    let listener = control::listen(socket).with_context(|| socket.display().to_string())?;
    let (mut try_at, mut said) = (Instant::now(), String::new());
    let charge = loop {
        if stop.load(Ordering::Relaxed) {
            break None;
        }
        if try_at <= Instant::now() {
            let why = match etcd.take_charge(own) {
                Ok(Taken::Ours(charge)) => break Some(charge),
                Ok(Taken::Theirs(other)) => format!("the directory at {other} is in charge"),
                Err(why @ (Trouble::Away(_) | Trouble::Compacted)) => why.to_string(),
                Err(why) => return Err(why.into()),
            };
            if why != said {
                println!("{}: this one waits", packet::visible::word(&why));
            }
            (said, try_at) = (why, Instant::now() + AGAIN);
        }
        answer(&listener, &said);
        thread::sleep(TICK);
    };
    let _ = std::fs::remove_file(socket);
    Ok(charge)
}

/// Answers the clients of a directory that is not in charge.
fn answer(listener: &UnixListener, why: &str) {
    while let Ok((stream, _)) = listener.accept() {
        let _ = control::request(&stream);
        control::answer(&stream, &json!({ "error": format!("{why}, and answers this") }));
    }
}
