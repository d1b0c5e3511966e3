//! Cases: packet specs, and what rules are expected to do with them. `tamis test` holds rules to them.
//!
//! A cases file is TOML:
//!
//! ```toml
//! rules = "rules.v4"         # optional; lies next to this file or below; RULES on the command line wins
//! rules6 = "rules.v6"        # optional: IPv6 rules to go with them, as --rules6
//!
//! [defaults]                 # optional; each key is the option of that name, which wins
//! in = "eth0"
//! out = "eth1"
//! net = ["eth0=0.0.0.0/0", "eth1=10.0.0.0/8"]
//! local = ["192.0.2.1"]
//! path = "forward"           # forward, input, output or auto
//! ct = "kernel"              # kernel, midstream or off
//! queue-verdict = ["accept", "3=drop"]
//! options = "usual"          # of packets that do not say: payload, options, mac, seq, ack, win, chunk, type, spi, id, label
//!
//! [[case]]
//! name = "the database is not reachable from outside"
//! packet = "in=eth0 out=eth1 tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn"
//! expect = "drop"            # accept, drop, reject or unknown
//! by = "filter/FORWARD/12"   # optional: table/chain/number, table/chain/policy or ttl
//!
//! [[case]]
//! name = "an answer comes back"
//! packets = ["udp 10.0.0.9:4000 > 192.0.2.53:53", "udp 192.0.2.53:53 > 10.0.0.9:4000"]
//! expect = ["accept", "accept"]   # one for each packet; a single string is expected of every packet
//! by_text = "-A FORWARD -p udp --sport 53 -j ACCEPT"     # instead of by: the rule's text
//! ```
//!
//! `packets` are a conversation: they run in order through one handler, which remembers. `by` and `by_text`
//! say what is to decide the last packet. A case starts afresh: it sees nothing of the cases before it.
//!
//! Contract: what is wrong in a file is an error with its line and column; what is wrong about the rules
//! (a rule that no longer exists, a verdict that changed) is a failing case.

mod case;
mod evaluate;
mod fit;
mod github;
mod json;
mod junit;
mod place;
mod read;
pub mod record;
mod text;

pub use crate::named_file::NamedFile;
pub use case::{Case, Cases, Defaults, Expect, Expected, ExpectedBy, Given};
pub use evaluate::{CaseResult, Decided, Got, Results, evaluate};
pub use github::annotation;
pub use place::PlaceName;
