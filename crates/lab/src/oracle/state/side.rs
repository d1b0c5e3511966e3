//! [`Side`]: the kernel's side of a conversation.
//!
//! What the kernel sends by itself (errors, resets) is dropped in the raw table's OUTPUT chain, whose counters are
//! not compared: it would be counted by later rules at times of its own.

use std::io;
use std::thread;
use std::time::Duration;

use rules::model::{Family, Ruleset};

use crate::oracle::counters::{ChainCounters, Reader};
use crate::oracle::kernel::wait_for_routes;
use crate::oracle::load::restore;
use crate::oracle::netns::ip;
use crate::oracle::tun::Tun;
use crate::scene::serial;
use crate::state::stage::Stage;
use crate::state::wire::whole;
use crate::state::{Came, Sent};

/// How long a packet may take on a busy machine.
const PATIENCE: Duration = Duration::from_millis(20);

/// The kernel's side.
#[derive(Debug)]
pub struct Side {
    tun: Tun,
    reader: Reader,
    buffer: Vec<u8>,
}

impl Side {
    /// Sets the stage up in the calling thread's namespace and loads rules; the second error is the kernel's
    /// refusal of them.
    pub fn new(stage: &Stage, rules: &str) -> io::Result<Result<Self, String>> {
        // Before the devices come up, for then the host joins groups.
        restore(stage.scene.family, SILENT)?;
        restore(Family::Ipv6, SILENT)?;
        let tun = Tun::new(&stage.scene)?;
        wait_for_routes(stage.scene)?;
        let near = stage.device(false);
        let routes = stage.inside.iter().map(|net| format!("route add {net} dev {near}\n"));
        ip(&routes.collect::<String>())?;
        if let Err(error) = restore(stage.scene.family, &silenced(rules)) {
            return Ok(Err(error.to_string()));
        }
        let reader = Reader::open(stage.scene.family)?;
        Ok(Ok(Self { tun, reader, buffer: vec![0; 1 << 16] }))
    }

    /// Sends a packet in; what comes out, put together.
    pub fn pass(&mut self, sent: &Sent) -> io::Result<Option<Came>> {
        if sent.from_far {
            self.tun.send_far(&sent.bytes)?;
        } else {
            self.tun.send(&sent.bytes)?;
        }
        self.receive(sent)
    }

    /// What came out since, for a packet that should have.
    pub fn wait_for(&mut self, sent: &Sent) -> io::Result<Option<Came>> {
        thread::sleep(PATIENCE);
        self.receive(sent)
    }

    fn receive(&mut self, sent: &Sent) -> io::Result<Option<Came>> {
        let (mut pieces, mut by_far) = (Vec::new(), false);
        for far in [false, true] {
            loop {
                let received = match far {
                    false => self.tun.receive_near(&mut self.buffer)?,
                    true => self.tun.receive(&mut self.buffer)?,
                };
                let Some(len) = received else { break };
                let bytes = &self.buffer[..len];
                if serial(bytes) == serial(&sent.bytes) {
                    pieces.push(bytes.to_vec());
                    by_far = far;
                }
            }
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let bytes = whole(&pieces).unwrap_or_else(|| pieces.concat());
        Ok(Some(Came { by_far, bytes }))
    }

    /// Counters of a table.
    pub fn counters(&mut self, table: &str) -> io::Result<Vec<ChainCounters>> {
        self.reader.read(table)
    }

    /// The same of every table of a ruleset, by the names of both.
    pub fn all_counters(&mut self, ruleset: &Ruleset) -> io::Result<Vec<(usize, ChainCounters)>> {
        let mut all = Vec::new();
        for (index, table) in ruleset.tables.iter().enumerate() {
            let chains = self.reader.read(&table.name)?;
            all.extend(chains.into_iter().map(|chain| (index, chain)));
        }
        Ok(all)
    }
}

/// Drops what the host sends, before any other rule sees it.
const SILENT: &str = "*raw\n-A OUTPUT -j DROP\nCOMMIT\n";

/// The rules with that among them: restoring a table replaces it whole.
fn silenced(rules: &str) -> String {
    let Some(raw) = rules.find("*raw\n") else { return rules.to_owned() };
    let mut at = raw + "*raw\n".len();
    while rules[at..].starts_with(':') {
        at += rules[at..].find('\n').map_or(rules.len() - at, |end| end + 1);
    }
    format!("{}-A OUTPUT -j DROP\n{}", &rules[..at], &rules[at..])
}
