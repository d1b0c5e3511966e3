//! Metrics: the counters of a run, for Prometheus and other readers of OpenMetrics, over HTTP.
//!
//! Contract: `GET /metrics` and nothing else; anybody that reaches the socket may read it, so it is loopback's unless
//! the configuration says otherwise; a browser reads it for no page of another name than the configuration has
//! ([`host`]). It is opened with the ports and served by threads of its own, each with [`http::PATIENCE`] for all it
//! does. It costs a frame nothing. `figures` has the families, docs/metrics.md names them all.
//!
//! Source: the OpenMetrics specification, version 1.0; the text is `prometheus-client`'s.

mod figures;
mod host;
mod http;
mod process;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::api::parts::Parts;
use crate::config::MetricsSettings;
use crate::surfaces::serving::{Door, Served as Client, Serving};
use figures::Figures;
use http::{Asked, Status};
use process::Process;

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Metrics {
    listener: TcpListener,
    /// Names that clients may give in the field Host, besides addresses.
    names: Vec<String>,
    /// Whether every page has the counters of rules.
    rules: bool,
    process: Option<Process>,
}

/// The warning about an address that others can reach, too.
pub(crate) fn warning(settings: Option<&MetricsSettings>) -> Option<String> {
    let listen = settings?.listen;
    let open = "whoever reaches that address reads its counters, and nothing asks who they are";
    (!listen.ip().is_loopback()).then(|| format!("[metrics] listen = \"{listen}\": {open}"))
}

impl Metrics {
    /// Listens at the address of a configuration.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn open(settings: &MetricsSettings) -> io::Result<Self> {
        let MetricsSettings { listen, rules, names } = settings.clone();
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, names, rules, process: Process::open() })
    }

    /// The address of the socket, if the system says so: the port is the system's choice where port 0 was asked for.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves clients from now on.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn serve(self, parts: &Arc<Parts>) -> io::Result<Serving<TcpStream>> {
        Serving::start(Served { metrics: self, parts: Arc::clone(parts) })
    }
}

struct Served {
    metrics: Metrics,
    parts: Arc<Parts>,
}

impl Door for Served {
    type Client = TcpStream;
    const NAME: &'static str = "metrics";

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.metrics.listener.as_fd()
    }

    fn accept(&self) -> io::Result<TcpStream> {
        self.metrics.listener.accept().map(|(client, _)| client)
    }

    fn answer(&self, client: &mut Client<TcpStream>) {
        // A client that disconnects without its answer needs none.
        let _ = http::serve(client, &self.metrics.names, |asked| self.page(asked));
    }
}

impl Served {
    fn page(&self, asked: Asked) -> (Status, String) {
        let with_rules = self.metrics.rules || asked.rules;
        // Counters of rules take a moment where a worker is busy with a burst.
        let snapshot = with_rules.then(|| self.parts.rules.published().snapshot()).transpose();
        match snapshot.map_err(|error| error.to_string()).and_then(|snapshot| {
            let held = self.metrics.process.as_ref().and_then(Process::held);
            Figures::of(&self.parts, snapshot, held).text().map_err(|error| error.to_string())
        }) {
            Ok(text) => (Status::Ok, text),
            Err(what) => (Status::Unavailable, format!("{what}\n")),
        }
    }
}
