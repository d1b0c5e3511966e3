//! [`Etcd`]: a client of etcd's v3 API by its gateway of HTTP and JSON: rows of text below a prefix, and who is in charge of them.
//!
//! Contract: a row is written only by who is in [`Charge`]: each transaction compares whose the row of the charge is, so one whose
//! lease has ended writes nothing any more, however late it notices. What could not be written may have been: to write it again
//! is to write it once. Calls wait, for 2 s for each server; nothing is kept between them, no connection and no watch, so there is nothing to
//! resume: [`Etcd::all`] reads all rows at one revision, and again from the first where etcd compacts it meanwhile.
//!
//! Source: etcd 3.4, `rpc.proto` and its gateway: keys and values are base64, 64-bit numbers are strings, fields that are zero are
//! left out.

mod http;

use std::sync::atomic::{AtomicUsize, Ordering};

use base64ct::{Base64, Encoding};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The row of who is in charge.
const CHARGE: &str = "charge";
/// Seconds after which who is in charge is so no longer, unless the lease is renewed: longer than a renewal and a server that hangs take.
const LEASE: u64 = 5;
/// Rows that are read at once.
const PAGE: u64 = 512;
/// How often reading all rows begins again where etcd compacts them meanwhile.
const TRIES: usize = 5;
/// The code of an error that says that a request is wrong, as it will be again.
const INVALID: u64 = 3;
/// The code of an error that says that a revision is no longer there.
const OUT_OF_RANGE: u64 = 11;

/// Rows, each of which replaces what the key had, or removes it.
pub(crate) type Rows = Vec<(String, Option<String>)>;

/// The servers of etcd, and the prefix of a network's keys.
#[derive(Debug)]
pub(crate) struct Etcd {
    servers: Vec<String>,
    /// The server that answered last.
    last: AtomicUsize,
    prefix: String,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No server answers, or they cannot do it now.
    Away(String),
    /// It is refused, and will be again.
    Refused(String),
    /// The revision is no longer there.
    Compacted,
}

/// The right to write, as long as the lease holds.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    lease: String,
    /// The revision at which the row of the charge was made.
    revision: String,
}

/// The client in charge.
#[derive(Debug)]
pub(crate) enum Taken {
    /// We are, from now on.
    Ours(Charge),
    /// Another one, who says of itself where it is.
    Theirs(String),
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    revision: String,
}

#[derive(Deserialize)]
struct Pair {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Range {
    header: Header,
    #[serde(default)]
    kvs: Vec<Pair>,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct Written {
    header: Header,
    #[serde(default)]
    succeeded: bool,
}

#[derive(Deserialize)]
struct Granted {
    #[serde(rename = "ID")]
    id: String,
}

#[derive(Deserialize)]
struct Renewed {
    result: Lease,
}

#[derive(Deserialize)]
struct Lease {
    #[serde(rename = "TTL", default)]
    left: String,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: u64,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Away(why) => write!(f, "etcd does not answer: {why}"),
            Self::Refused(why) => write!(f, "etcd refuses: {why}"),
            Self::Compacted => f.write_str("etcd compacts faster than it can be read"),
        }
    }
}

impl std::error::Error for Trouble {}

impl Etcd {
    /// A client of these servers, each `HOST:PORT`, for the network of a domain.
    pub(crate) fn new(servers: Vec<String>, domain: &str) -> Self {
        Self { servers, last: AtomicUsize::new(0), prefix: format!("/tamis/{domain}/") }
    }

    /// Asks the servers, that which answered last first.
    fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Trouble> {
        let body = body.to_string();
        let first = self.last.load(Ordering::Relaxed);
        let mut troubles = Vec::new();
        for number in (0..self.servers.len()).map(|it| (first + it) % self.servers.len()) {
            let server = &self.servers[number];
            let answer = match http::post(server, path, &body) {
                Ok((200, answer)) => {
                    serde_json::from_str(&answer).map_err(|error| error.to_string())
                }
                Ok((status, answer)) => {
                    let error = serde_json::from_str(&answer);
                    let error =
                        error.unwrap_or_else(|_| Error { message: format!("{status}"), code: 0 });
                    match error.code {
                        INVALID => return Err(Trouble::Refused(error.message)),
                        OUT_OF_RANGE => return Err(Trouble::Compacted),
                        _ => Err(error.message),
                    }
                }
                Err(why) => Err(why),
            };
            match answer {
                Ok(answer) => {
                    self.last.store(number, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(why) => troubles.push(format!("{server}: {why}")),
            }
        }
        Err(Trouble::Away(troubles.join("; ")))
    }

    fn key(&self, key: &str) -> String {
        encoded(&format!("{}{key}", self.prefix))
    }

    /// Becomes in charge, unless another one is. `own` is what that one hears.
    pub(crate) fn take_charge(&self, own: &str) -> Result<Taken, Trouble> {
        let key = self.key(CHARGE);
        let holder: Range = self.ask("/v3/kv/range", &json!({ "key": key }))?;
        if let Some(row) = holder.kvs.first() {
            return Ok(Taken::Theirs(decoded(&row.value)?));
        }
        let lease: Granted = self.ask("/v3/lease/grant", &json!({ "TTL": LEASE }))?;
        let put = json!({ "key": key, "value": encoded(own), "lease": lease.id });
        let transaction = json!({
            "compare": [{ "key": key, "target": "CREATE", "create_revision": "0" }],
            "success": [{ "request_put": put }],
        });
        let written: Written = self.ask("/v3/kv/txn", &transaction)?;
        Ok(match written.succeeded {
            true => Taken::Ours(Charge { lease: lease.id, revision: written.header.revision }),
            false => Taken::Theirs("another one".to_owned()),
        })
    }

    /// Renews the lease; returns whether it still held.
    pub(crate) fn renew(&self, charge: &Charge) -> Result<bool, Trouble> {
        let renewed: Renewed = self.ask("/v3/lease/keepalive", &json!({ "ID": charge.lease }))?;
        Ok(renewed.result.left.parse().is_ok_and(|left: u64| left > 0))
    }

    /// Ends the charge: another one may take it at once.
    pub(crate) fn give_back(&self, charge: &Charge) -> Result<(), Trouble> {
        self.ask("/v3/lease/revoke", &json!({ "ID": charge.lease })).map(|_: Value| ())
    }

    /// Writes rows, all of them or none; returns whether we are in charge still.
    pub(crate) fn write(&self, rows: &Rows, charge: &Charge) -> Result<bool, Trouble> {
        let operations: Vec<Value> = rows
            .iter()
            .map(|(key, value)| match value {
                Some(value) => json!({
                    "request_put": { "key": self.key(key), "value": encoded(value) },
                }),
                None => json!({ "request_delete_range": { "key": self.key(key) } }),
            })
            .collect();
        let (key, revision) = (self.key(CHARGE), &charge.revision);
        let transaction = json!({
            "compare": [{ "key": key, "target": "CREATE", "create_revision": revision }],
            "success": operations,
        });
        let written: Written = self.ask("/v3/kv/txn", &transaction)?;
        Ok(written.succeeded)
    }

    /// All rows whose keys begin with `table`, in the order of their keys, without that word, as they were at one moment.
    pub(crate) fn all(&self, table: &str) -> Result<Vec<(String, String)>, Trouble> {
        for _ in 0..TRIES {
            match self.pages(table) {
                Err(Trouble::Compacted) => {}
                read => return read,
            }
        }
        Err(Trouble::Compacted)
    }

    fn pages(&self, table: &str) -> Result<Vec<(String, String)>, Trouble> {
        let (mut rows, mut revision) = (Vec::<(String, String)>::new(), "0".to_owned());
        loop {
            let after = rows.last().map_or_else(String::new, |(key, _)| format!("{key}\0"));
            let question = json!({
                "key": self.key(&format!("{table}{after}")),
                "range_end": self.key(&end(table)),
                "limit": PAGE.to_string(),
                "revision": revision,
            });
            let page: Range = self.ask("/v3/kv/range", &question)?;
            let is_last = !page.more || page.kvs.is_empty();
            self.take_up(table, page.kvs, &mut rows)?;
            if is_last {
                return Ok(rows);
            }
            if revision == "0" {
                revision = page.header.revision;
            }
        }
    }

    /// The last rows whose keys begin with `table`, `most` at most, that with the last key first.
    pub(crate) fn last(&self, table: &str, most: u64) -> Result<Vec<(String, String)>, Trouble> {
        let question = json!({
            "key": self.key(table),
            "range_end": self.key(&end(table)),
            "limit": most.to_string(),
            "sort_order": "DESCEND",
            "sort_target": "KEY",
        });
        let page: Range = self.ask("/v3/kv/range", &question)?;
        let mut rows = Vec::new();
        self.take_up(table, page.kvs, &mut rows)?;
        Ok(rows)
    }

    fn take_up(
        &self,
        table: &str,
        read: Vec<Pair>,
        rows: &mut Vec<(String, String)>,
    ) -> Result<(), Trouble> {
        let start = format!("{}{table}", self.prefix);
        for Pair { key, value } in read {
            let key = decoded(&key)?;
            let other = || Trouble::Refused(format!("it answers {key}, which nobody asked for"));
            let name = key.strip_prefix(&start).ok_or_else(other)?;
            rows.push((name.to_owned(), decoded(&value)?));
        }
        Ok(())
    }
}

/// The first key after all keys that begin with `table`, whose last byte is less than 255.
fn end(table: &str) -> String {
    let mut bytes = table.as_bytes().to_vec();
    bytes.iter_mut().next_back().into_iter().for_each(|last| *last += 1);
    String::from_utf8(bytes).unwrap_or_default()
}

fn encoded(text: &str) -> String {
    Base64::encode_string(text.as_bytes())
}

fn decoded(text: &str) -> Result<String, Trouble> {
    let bytes = Base64::decode_vec(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    bytes.ok_or_else(|| Trouble::Refused(format!("it answers {text}, which is no text")))
}

#[cfg(test)]
#[path = "../../tests/cloud/etcd.rs"]
pub(crate) mod process;
#[cfg(test)]
pub(crate) mod tests;
