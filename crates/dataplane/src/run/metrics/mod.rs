//! Metrics: what a run counts, for Prometheus and whatever else reads OpenMetrics, over HTTP.
//!
//! Contract: `GET /metrics` and nothing else; whoever reaches the socket may read it, so it is loopback's unless the
//! configuration says otherwise. It is opened with the ports and served by threads of its own: [`MOST_CLIENTS`] at a time,
//! each with [`http::PATIENCE`] for all it does. Nothing of it is on the way of a frame. `figures` has the families,
//! docs/metrics.md names them all.
//!
//! Source: the OpenMetrics specification, version 1.0; the text is `prometheus-client`'s.

mod figures;
mod http;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::RunError;
use super::config::MetricsSettings;
use super::live::Live;
use super::serving::{Door, Serving};
use figures::Figures;
use http::{Asked, Status};

/// Clients that are served at a time.
const MOST_CLIENTS: usize = 16;

/// A socket that is listened at.
#[derive(Debug)]
pub(super) struct Metrics {
    listener: TcpListener,
    /// Rules have their counters on every page.
    rules: bool,
}

/// What is to be said of an address that others reach, too.
pub(super) fn warning(settings: Option<&MetricsSettings>) -> Option<String> {
    let listen = settings?.listen;
    let open = "whoever reaches that address reads its counters, and nothing asks who they are";
    (!listen.ip().is_loopback()).then(|| format!("[metrics] listen = \"{listen}\": {open}"))
}

impl Metrics {
    /// Listens at the address of a configuration.
    pub(super) fn open(settings: &MetricsSettings) -> Result<Self, RunError> {
        let MetricsSettings { listen, rules } = *settings;
        let open = || {
            let listener = TcpListener::bind(listen)?;
            listener.set_nonblocking(true)?;
            Ok(Self { listener, rules })
        };
        open().map_err(|source| RunError::Metrics { listen, source })
    }

    /// Where it listens, if the system says so: the port is the system's choice where port 0 was asked for.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves clients from now on.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn serve(self, live: &Arc<Live>) -> io::Result<Serving> {
        Serving::start(Served { metrics: self, live: Arc::clone(live) })
    }
}

struct Served {
    metrics: Metrics,
    live: Arc<Live>,
}

impl Door for Served {
    type Client = TcpStream;
    const NAME: &'static str = "metrics";
    const MOST_CLIENTS: usize = MOST_CLIENTS;

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.metrics.listener.as_fd()
    }

    fn accept(&self) -> io::Result<TcpStream> {
        self.metrics.listener.accept().map(|(client, _)| client)
    }

    fn answer(&self, client: TcpStream) {
        // One that goes away without its answer needs none.
        let _ = http::serve(&client, |asked| self.page(asked));
    }

    fn refuse(&self, client: TcpStream) {
        http::refuse(&client, MOST_CLIENTS);
    }
}

impl Served {
    fn page(&self, asked: Asked) -> (Status, String) {
        let with_rules = self.metrics.rules || asked.rules;
        // Counters of rules take a moment where a worker is busy with a burst.
        let snapshot = with_rules.then(|| self.live.published.snapshot()).transpose();
        match snapshot.map_err(|error| error.to_string()).and_then(|snapshot| {
            Figures::of(&self.live, snapshot).text().map_err(|error| error.to_string())
        }) {
            Ok(text) => (Status::Ok, text),
            Err(what) => (Status::Unavailable, format!("{what}\n")),
        }
    }
}
