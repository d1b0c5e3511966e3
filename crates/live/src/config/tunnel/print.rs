//! Prints settings as the TOML that they are read from. Writing to a `String` cannot fail, so its result is not
//! checked.

use std::fmt::{Display, Write};
use std::path::Path;

use ::tunnel::Prefix;
use rules::model::Family;
use toml::Value;

use super::super::{Privileges, folder};
use super::{Ciphers, Dscp, MTU, PeerSettings, Table, TunnelSettings};

impl TunnelSettings {
    /// Prints the file. The files that it names exist already; defaults are left out.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut lines =
            Lines { text: "[tunnel]\n".to_owned(), folder: folder(Path::new(&self.file)) };
        lines.text_of("name", &self.name);
        lines.file("key", &self.key_file.path);
        lines.list("address", self.addresses.iter().map(|(addr, bits)| format!("{addr}/{bits}")));
        lines.number("listen", Some(self.listen).filter(|port| *port != 0));
        lines.number("mtu", Some(self.mtu).filter(|mtu| *mtu != MTU));
        self.ciphers_and_marks(&mut lines);
        lines.list("dns", self.dns.iter().map(ToString::to_string));
        lines.list("search", self.search.iter().cloned());
        match self.table {
            Table::Auto => {}
            Table::Off => lines.text_of("table", "off"),
            Table::Number(number) => lines.number("table", Some(number)),
        }
        let hooks = &self.hooks;
        lines.list("pre_up", hooks.pre_up.iter().cloned());
        lines.list("post_up", hooks.post_up.iter().cloned());
        lines.list("pre_down", hooks.pre_down.iter().cloned());
        lines.list("post_down", hooks.post_down.iter().cloned());
        self.run(&mut lines);
        if let Some(cloud) = &self.cloud {
            lines.text.push_str("\n[cloud]\n");
            lines.text_of("name", cloud.name.as_str());
            lines.text_of("domain", &cloud.domain);
            lines.text_of("directory", &cloud.directory.to_string());
            lines.list("also", cloud.also.iter().map(ToString::to_string));
            if let Some(authority) = cloud.authority {
                lines.text_of("authority", &authority.to_string());
            }
            lines.text_of("signer", &cloud.signer.to_string());
            lines.number("tcp", cloud.tcp);
        }
        for peer in &self.peers {
            peer.print(&mut lines);
        }
        lines.text
    }

    fn ciphers_and_marks(&self, lines: &mut Lines<'_>) {
        match self.ciphers {
            Ciphers::Auto => {}
            Ciphers::Aes256Gcm => lines.text_of("ciphers", "aes-256-gcm"),
            Ciphers::ChaCha20Poly1305 => lines.text_of("ciphers", "chacha20-poly1305"),
        }
        lines.number("mark", self.mark);
        if let Some(device) = &self.device {
            lines.text_of("device", device);
        }
        match self.dscp {
            Dscp::Copy => lines.text_of("dscp", "copy"),
            Dscp::Fixed(dscp) => lines.number("dscp", Some(dscp).filter(|dscp| *dscp != 0)),
        }
        if !self.answers_speed {
            lines.text_of("speed", "off");
        }
    }

    fn run(&self, lines: &mut Lines<'_>) {
        for rules in &self.rules {
            let key = if rules.family == Family::Ipv4 { "rules" } else { "rules6" };
            lines.file(key, &rules.file.path);
        }
        for (key, named) in [("ipset", &self.ipset), ("bans", &self.bans)] {
            if let Some(named) = named {
                lines.file(key, &named.path);
            }
        }
        lines.number("workers", Some(self.workers).filter(|workers| *workers != 1));
        match self.privileges {
            Privileges::Auto => {}
            Privileges::Required => lines.text_of("privileges", "required"),
            Privileges::Off => lines.text_of("privileges", "off"),
        }
        if self.control != Self::control_of(&self.name) {
            lines.file("control", &self.control);
        }
        if let Some(metrics) = &self.metrics {
            lines.text_of("metrics", &metrics.listen.to_string());
            lines.list("metrics_names", metrics.names.iter().cloned());
        }
    }
}

impl PeerSettings {
    fn print(&self, lines: &mut Lines<'_>) {
        lines.text.push_str("\n[[peer]]\n");
        lines.text_of("name", &self.name);
        lines.text_of("key", &self.key.to_string());
        if let Some(named) = &self.preshared_file {
            lines.file("preshared", &named.path);
        }
        if let Some(endpoint) = &self.endpoint {
            lines.text_of("endpoint", &endpoint.to_string());
        }
        lines.list("allowed", self.allowed.iter().map(prefix));
        lines.number("keepalive", self.keepalive);
    }
}

/// A prefix as it is written.
pub(super) fn prefix(prefix: &Prefix) -> String {
    format!("{}/{}", prefix.address(), prefix.len())
}

/// Lines of TOML, of a file in this folder.
struct Lines<'a> {
    text: String,
    folder: &'a Path,
}

impl Lines<'_> {
    fn line(&mut self, key: &str, value: &dyn Display) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn text_of(&mut self, key: &str, text: &str) {
        self.line(key, &Value::from(text));
    }

    fn number(&mut self, key: &str, number: Option<impl Display>) {
        if let Some(number) = number {
            self.line(key, &number);
        }
    }

    /// Prints the path of a file, relative to the folder of the file that names it.
    fn file(&mut self, key: &str, path: &Path) {
        let path = path.strip_prefix(self.folder).unwrap_or(path);
        self.text_of(key, &path.display().to_string());
    }

    fn list(&mut self, key: &str, entries: impl Iterator<Item = String>) {
        let entries: Vec<Value> = entries.map(Value::from).collect();
        if !entries.is_empty() {
            self.line(key, &Value::from(entries));
        }
    }
}
